// One rank as a child process.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "launch/unique_fd.hpp"

namespace ddprun::launch {

struct Child {
  pid_t pid = -1;  // also the number of its process group
  UniqueFd out;    // what it prints: non-blocking read ends
  UniqueFd err;
};

// Starts `command` (argv; command[0] is a path) in a process group of its own, stdin from /dev/null, with exactly the
// variables of `environment` ("NAME=value"), no signal blocked or ignored. Throws Error(failure) naming the program.
Child spawn(const std::vector<std::string>& command, const std::vector<std::string>& environment);

// This process's environment, with the DDPRUN_ variables of a rank replaced by those in `added`.
std::vector<std::string> environment_with(const std::vector<std::string>& added);

}  // namespace ddprun::launch
