// Whether another process still runs.
#pragma once

#include <sys/types.h>

#include <utility>

namespace ddprun::comm {

// Watches one process by a pidfd, which, unlike a pid, is never given to a later process, and tells a zombie from the
// living.
class ProcessWatch {
 public:
  ProcessWatch() = default;
  explicit ProcessWatch(pid_t pid);
  ~ProcessWatch();
  ProcessWatch(ProcessWatch&& other) noexcept
      : pid_(std::exchange(other.pid_, 0)), descriptor_(std::exchange(other.descriptor_, -1)) {}
  ProcessWatch& operator=(ProcessWatch&& other) noexcept {
    std::swap(pid_, other.pid_);
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }

  pid_t pid() const { return pid_; }  // 0: watches none
  // False for a watch of none. Where the kernel has no pidfd (before 5.3), a zombie counts as running.
  bool has_ended() const;

 private:
  pid_t pid_ = 0;
  int descriptor_ = -1;
};

}  // namespace ddprun::comm
