// A small process that outlives the launcher just long enough to clean up after it: PR_SET_PDEATHSIG ends the ranks
// themselves, but neither their children nor the job's folder.
#pragma once

#include <sys/types.h>

#include <string>

#include "launch/unique_fd.hpp"

namespace ddprun::launch {

// A fork of this process in a session of its own, so that neither a terminal nor a kill of the launcher's group reaches
// it. It waits for the end of a pipe that the launcher alone writes; when that comes while process groups are still
// entrusted to it, it kills them and removes the folder. Make it while the process has one thread. Not thread-safe.
class Guardian {
 public:
  explicit Guardian(const std::string& job_dir);  // throws Error(failure)
  ~Guardian();                                    // ends it, and waits for its end
  Guardian(const Guardian&) = delete;
  Guardian& operator=(const Guardian&) = delete;

  // A group is to be released before its leader is reaped: after that the number may belong to someone else.
  void entrust(pid_t group);
  void release(pid_t group);

 private:
  void tell(pid_t message);

  UniqueFd pipe_;
  pid_t pid_ = -1;
};

}  // namespace ddprun::launch
