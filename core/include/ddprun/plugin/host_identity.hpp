// ddprun/plugin/host_identity.hpp: which processes run on the same host, as the kernel sees it. Header-only.
#pragma once

#include <sys/stat.h>

#include <fstream>
#include <initializer_list>
#include <string>

namespace ddprun {
namespace detail {

// The kernel since its boot, and this process's namespaces of these kinds; "" if /proc does not report one of them.
inline std::string identity_of(std::initializer_list<const char*> kinds) {
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

}  // namespace detail

// Equal for two processes if and only if they have the same kernel since the same boot, and the same IPC and PID
// namespaces, which shared memory needs; at most 100 bytes. Empty if /proc does not report it: such a process shares a
// host with no other. Any thread.
inline std::string host_identity() {
  return detail::identity_of({"ipc", "pid"});
}

// As host_identity(), but of the network namespace: such processes reach each other at 127.0.0.1.
inline std::string network_identity() {
  return detail::identity_of({"net"});
}

}  // namespace ddprun
