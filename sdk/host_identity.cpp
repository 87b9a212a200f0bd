#include "ddprun/plugin/host_identity.hpp"

#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <initializer_list>

namespace ddprun {
namespace {

// The kernel since its boot, and this process's namespaces of these kinds; "" if /proc does not report one of them.
std::string identity_of(std::initializer_list<const char*> kinds) {
  std::string identity;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> identity;
  if (identity.empty() || identity.size() > 40) return "";
  for (const char* kind : kinds) {
    struct stat status = {};
    if (::stat((std::string("/proc/self/ns/") + kind).c_str(), &status) != 0) return "";
    identity.append(" ").append(std::to_string(status.st_ino));
  }
  return identity;
}

}  // namespace

std::string host_identity() {
  return identity_of({"ipc", "pid"});
}

std::string network_identity() {
  return identity_of({"net"});
}

int usable_cores() {
  cpu_set_t mask;
  if (::sched_getaffinity(0, sizeof mask, &mask) == 0) return CPU_COUNT(&mask);
  return static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
}

}  // namespace ddprun
