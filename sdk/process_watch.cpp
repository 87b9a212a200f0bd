#include "ddprun/plugin/process_watch.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>

namespace ddprun {

uint64_t start_time(pid_t pid) {
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

ProcessWatch::ProcessWatch(pid_t pid, uint64_t started)
    : pid_(pid), descriptor_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))), error_(errno) {
  if (descriptor_ >= 0) error_ = 0;
  ended_before_ = error_ == ESRCH || (started != 0 && start_time(pid) != started);
}

ProcessWatch::~ProcessWatch() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool ProcessWatch::has_ended() const noexcept {
  if (pid_ == 0) return false;
  if (ended_before_) return true;
  if (descriptor_ < 0) return ::kill(pid_, 0) != 0 && errno == ESRCH;
  pollfd ended{descriptor_, POLLIN, 0};
  return ::poll(&ended, 1, 0) == 1;
}

void ProcessWatch::swap(ProcessWatch& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(error_, other.error_);
  std::swap(ended_before_, other.ended_before_);
}

}  // namespace ddprun
