// A small process that cleans up after a launcher that was killed. PR_SET_PDEATHSIG ends the ranks, but neither their
// children nor the job's folder.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/unique_fd.hpp"

namespace ddprun::launch {

// A fork of this process in a session of its own, so that neither a terminal nor a kill of the launcher's group reaches
// it. It waits until the launcher's end of a pipe is closed. Then it kills the process groups that were entrusted to
// it, and removes the job's folder. Construct it while the process has one thread. Not thread-safe.
class Guardian {
 public:
  explicit Guardian(const std::string& job_dir);  // throws Error(failure)
  ~Guardian();                                    // as the death of the launcher; waits for the process
  Guardian(const Guardian&) = delete;
  Guardian& operator=(const Guardian&) = delete;

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
