// ddprun/plugin/process_watch.hpp: whether another process of this host still runs.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace ddprun {

// When a process started, in clock ticks since boot: distinguishes it from a later process with the same number. 0 if
// there is no such process.
uint64_t start_time(pid_t pid);

// Watches one process by a pidfd, which never refers to a later process and reports a zombie as ended.
class ProcessWatch {
 public:
  ProcessWatch() = default;
  // `started`: its start_time(), or 0 where that is not known. A process that has another one is a later one.
  explicit ProcessWatch(pid_t pid, uint64_t started = 0);
  ~ProcessWatch();
  ProcessWatch(ProcessWatch&& other) noexcept { swap(other); }
  ProcessWatch& operator=(ProcessWatch&& other) noexcept {
    swap(other);
    return *this;
  }

  pid_t pid() const noexcept { return pid_; }  // 0: watches none
  // Why the kernel gave no pidfd, as an errno; 0 where it gave one, or the process had ended.
  int error() const noexcept { return ended_before_ ? 0 : error_; }
  // False for a watch of none. Without a pidfd (before Linux 5.3) a zombie counts as running.
  bool has_ended() const noexcept;

 private:
  void swap(ProcessWatch& other) noexcept;

  pid_t pid_ = 0;
  int descriptor_ = -1;
  int error_ = 0;
  bool ended_before_ = false;
};

}  // namespace ddprun
