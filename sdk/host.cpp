#include "ddprun/plugin/host.hpp"

#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include <csignal>

namespace ddprun {

std::string host_identity() {
  char text[DDPRUN_IDENTITY_SIZE];
  ddprun_host_identity(text);
  return text;
}

std::string network_identity() {
  char text[DDPRUN_IDENTITY_SIZE];
  ddprun_network_identity(text);
  return text;
}

int usable_cores() {
  cpu_set_t mask;
  if (::sched_getaffinity(0, sizeof mask, &mask) == 0) return CPU_COUNT(&mask);
  return static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
}

ProcessWatch::~ProcessWatch() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool ProcessWatch::has_ended() const noexcept {
  if (pid_ == 0) return false;
  if (descriptor_ == kEnded) return true;
  if (descriptor_ < 0) return ::kill(pid_, 0) != 0 && errno == ESRCH;
  pollfd ended{descriptor_, POLLIN, 0};
  return ::poll(&ended, 1, 0) == 1;
}

}  // namespace ddprun
