// One rank as a child process.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/unique_fd.hpp"

namespace ddprun::launch {

struct Child {
  pid_t pid = -1;  // also the id of its process group
  UniqueFd out;    // its output: non-blocking read ends
  UniqueFd err;
};

// Closed on exec; the read end does not block. Throws Error(failure).
struct Pipe {
  UniqueFd read;
  UniqueFd write;
};
Pipe make_pipe();

// Starts `command` (argv; command[0] is a path, or a name on PATH) in a process group of its own, with stdin from
// /dev/null, exactly the variables of `environment` ("NAME=value"), and no signal blocked or ignored. Throws
// Error(failure) that names the program.
Child spawn(const std::vector<std::string>& command, const std::vector<std::string>& environment);

// This process's environment, with a rank's DDPRUN_ variables replaced by `added`.
std::vector<std::string> environment_with(const std::vector<std::string>& added);

}  // namespace ddprun::launch
