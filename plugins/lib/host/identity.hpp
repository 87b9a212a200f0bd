// Which ranks run on the same host, as the kernel sees it: same boot, same IPC and PID namespaces. Whether their memory
// can be shared is for the backend to say.
#pragma once

#include <string>

namespace ddprun::host {

// Equal for two processes exactly where they share a kernel and the namespaces of shared memory; at most 100 bytes.
// Empty where /proc does not say: such a process shares with none.
std::string identity();

}  // namespace ddprun::host
