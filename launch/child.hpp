// Child processes of the launcher: the ranks, and the guardian; and programs that the tools start.
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

// A small process that cleans up after a launcher that was killed: PR_SET_PDEATHSIG ends the ranks, but neither their
// children nor the job's folder. A fork in a session of its own, so that neither a terminal nor a kill of the
// launcher's group reaches it. It waits until the launcher's end of a pipe is closed. Then it kills the process groups
// that were entrusted to it, and removes the job's folder. Construct it while the process has one thread. Not
// thread-safe.
class Guardian {
 public:
  explicit Guardian(const std::string& job_dir);  // throws Error(failure)
  ~Guardian();                                    // as the death of the launcher; waits for the process

  // A rank calls entrust() itself, between fork and exec, so that it starts no process before. Async-signal-safe.
  // Release a group before its leader is reaped, because the id may be reused after that.
  void entrust(pid_t group) const { notify(group); }
  void release(pid_t group) const { notify(-group); }
  // A process that was forked from the launcher, and runs no other program, must not keep the pipe open.
  void close_in_child() { pipe_.reset(); }

 private:
  void notify(pid_t message) const;

  UniqueFd pipe_;
  pid_t pid_ = -1;
};

}  // namespace ddprun::launch
