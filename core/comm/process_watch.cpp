#include "comm/process_watch.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace ddprun::comm {

ProcessWatch::ProcessWatch(pid_t pid) : pid_(pid), descriptor_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {}

ProcessWatch::~ProcessWatch() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool ProcessWatch::has_ended() const {
  if (pid_ == 0) return false;
  if (descriptor_ < 0) return ::kill(pid_, 0) != 0 && errno == ESRCH;
  pollfd ended{descriptor_, POLLIN, 0};
  return ::poll(&ended, 1, 0) == 1;
}

}  // namespace ddprun::comm
