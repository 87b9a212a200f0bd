// Where this rank listens for the others.
#pragma once

#include <string>
#include <vector>

#include "ddprun/plugin/comm_plugin.hpp"
#include "ddprun/plugin/network_interface.hpp"

namespace ddprun::gloo_backend {

// A numeric address, the first of these: of the interface comm.options.interface; 127.0.0.1 if all ranks are on one
// host; of the interface GLOO_SOCKET_IFNAME, PyTorch's variable; host.address(). If a named interface has
// host.address(), this is used, otherwise its first address. Throws CommError(invalid) if the named interface cannot be
// used, or if no address is known.
std::string listening_address(const Host& host, bool one_host, const std::vector<NetworkInterface>& interfaces);

}  // namespace ddprun::gloo_backend
