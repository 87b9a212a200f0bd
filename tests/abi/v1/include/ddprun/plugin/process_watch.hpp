// ddprun/plugin/process_watch.hpp: whether another process of this host still runs. Header-only; ddprun and plugins
// share it.
#pragma once

#include <poll.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>

namespace ddprun {

// When a process started, in clock ticks since boot: distinguishes it from a later process with the same number. 0 if
// there is no such process.
inline uint64_t start_time(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  // The second field, the program's name in brackets, may hold anything; the 22nd is the time.
  const auto name_end = text.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(text.substr(name_end + 1));
  std::string skipped;
  for (int field = 3; field < 22; ++field) fields >> skipped;
  uint64_t started = 0;
  fields >> started;
  return started;
}

// Watches one process by a pidfd, which never refers to a later process and reports a zombie as ended.
class ProcessWatch {
 public:
  ProcessWatch() = default;
  // `started`: its start_time(), or 0 where that is not known. A process that has another one is a later one.
  explicit ProcessWatch(pid_t pid, uint64_t started = 0)
      : pid_(pid), descriptor_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))), error_(errno) {
    if (descriptor_ >= 0) error_ = 0;
    ended_before_ = error_ == ESRCH || (started != 0 && start_time(pid) != started);
  }
  ~ProcessWatch() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  ProcessWatch(ProcessWatch&& other) noexcept { swap(other); }
  ProcessWatch& operator=(ProcessWatch&& other) noexcept {
    swap(other);
    return *this;
  }

  pid_t pid() const noexcept { return pid_; }  // 0: watches none
  // Why the kernel gave no pidfd, as an errno; 0 where it gave one, or the process had ended.
  int error() const noexcept { return ended_before_ ? 0 : error_; }
  // False for a watch of none. Without a pidfd (before Linux 5.3) a zombie counts as running.
  bool has_ended() const noexcept {
    if (pid_ == 0) return false;
    if (ended_before_) return true;
    if (descriptor_ < 0) return ::kill(pid_, 0) != 0 && errno == ESRCH;
    pollfd ended{descriptor_, POLLIN, 0};
    return ::poll(&ended, 1, 0) == 1;
  }

 private:
  void swap(ProcessWatch& other) noexcept {
    std::swap(pid_, other.pid_);
    std::swap(descriptor_, other.descriptor_);
    std::swap(error_, other.error_);
    std::swap(ended_before_, other.ended_before_);
  }

  pid_t pid_ = 0;
  int descriptor_ = -1;
  int error_ = 0;
  bool ended_before_ = false;
};

}  // namespace ddprun
