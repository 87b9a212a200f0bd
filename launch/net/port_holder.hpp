// Which process listens on a TCP port of this host, for messages.
#pragma once

#include <string>

namespace ddprun::launch {

// " by pid 4711 (python3)"; empty if it cannot be found, for example because it belongs to another user.
std::string port_holder(int port) noexcept;

}  // namespace ddprun::launch
