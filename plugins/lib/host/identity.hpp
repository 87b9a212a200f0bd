// Which ranks run on the same host, as the kernel sees it: same boot, same IPC and PID namespaces. The backend decides
// whether they can share memory.
#pragma once

#include <string>

namespace ddprun::host {

// Equal for two processes if and only if they share a kernel and the namespaces of shared memory; at most 100 bytes.
// Empty if /proc does not report it: such a process shares a host with no other.
std::string identity();

}  // namespace ddprun::host
