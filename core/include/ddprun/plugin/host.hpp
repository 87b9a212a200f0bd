// ddprun/plugin/host.hpp: host.h for C++, and the cores that this process may use.
#pragma once

#include <sys/types.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <utility>

#include "ddprun/plugin/host.h"

namespace ddprun {

// As the C functions; at most 100 bytes. "" if it is not known. Any thread.
std::string host_identity();
std::string network_identity();

// The number of cores that this process may use: those of its affinity mask; all, if the kernel does not report it. Any
// thread.
int usable_cores();

inline uint64_t start_time(pid_t pid) {
  return ddprun_start_time(pid);
}

// Watches one process by a pidfd, which never refers to a later process and reports a zombie as ended.
class ProcessWatch {
 public:
  ProcessWatch() = default;
  // `started`: its start_time(), or 0 where that is not known. A process that has another one is a later one.
  explicit ProcessWatch(pid_t pid, uint64_t started = 0) : pid_(pid), descriptor_(ddprun_watch_process(pid, started)) {}
  ~ProcessWatch();
  ProcessWatch(ProcessWatch&& other) noexcept { swap(other); }
  ProcessWatch& operator=(ProcessWatch&& other) noexcept {
    swap(other);
    return *this;
  }

  pid_t pid() const noexcept { return pid_; }  // 0: watches none
  // Why the kernel gave no pidfd, as an errno; 0 where it gave one, or the process had ended.
  int error() const noexcept { return descriptor_ >= 0 || descriptor_ == kEnded ? 0 : -descriptor_; }
  // False for a watch of none. Without a pidfd (before Linux 5.3) a zombie counts as running.
  bool has_ended() const noexcept;

 private:
  static constexpr int kEnded = -ESRCH;

  void swap(ProcessWatch& other) noexcept {
    std::swap(pid_, other.pid_);
    std::swap(descriptor_, other.descriptor_);
  }

  pid_t pid_ = 0;
  int descriptor_ = kEnded;
};

}  // namespace ddprun
