// Child processes of the launcher: the ranks; and programs that the tools start.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "base/unique_fd.hpp"

namespace ddprun::launch {

struct Child {
  pid_t pid = -1;  // also the id of its process group
  UniqueFd out;    // its output: non-blocking read ends
  UniqueFd err;
};

// Both ends are closed on exec. make_pipe() throws Error(failure).
struct Pipe {
  UniqueFd read;
  UniqueFd write;
};
Pipe make_pipe();

// Starts a process that runs `command` (argv; command[0] is a path, or a name on PATH) with exactly the variables of
// `environment` ("NAME=value"). It has a process group of its own, stdin from /dev/null, and no signal blocked or
// ignored, except SIGUSR2. It calls `before_exec` first, which may call only async-signal-safe functions. It is killed
// when the calling thread ends, however that ends: call it on the main thread. Throws Error(failure) that names the
// program.
Child spawn(
    const std::vector<std::string>& command, const std::vector<std::string>& environment,
    const std::function<void()>& before_exec = [] {});

// Such a process that has what this one has loaded and prepared: LibTorch alone takes 0.14 s. It calls `before_start`,
// then `main`, with exactly the variables of `environment`, and exits with the result, without destructors of static
// objects. /proc shows this process's command line and variables for it. Call it while there is one thread. Throws
// Error(failure).
Child fork_rank(const std::function<int()>& main, const std::vector<std::string>& environment,
                const std::function<void()>& before_start);

// This process's environment, with a rank's DDPRUN_ variables replaced by `added`.
std::vector<std::string> environment_with(const std::vector<std::string>& added);

}  // namespace ddprun::launch
