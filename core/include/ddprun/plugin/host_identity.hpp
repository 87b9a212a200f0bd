// ddprun/plugin/host_identity.hpp: which processes run on the same host, as the kernel sees it, and on which cores.
#pragma once

#include <string>

namespace ddprun {

// Equal for two processes if and only if they have the same kernel since the same boot, and the same IPC and PID
// namespaces, which shared memory needs; at most 100 bytes. Empty if /proc does not report it: such a process shares a
// host with no other. Any thread.
std::string host_identity();

// As host_identity(), but of the network namespace: such processes reach each other at 127.0.0.1.
std::string network_identity();

// The number of cores that this process may use: those of its affinity mask; all, if the kernel does not report it. Any
// thread.
int usable_cores();

}  // namespace ddprun
