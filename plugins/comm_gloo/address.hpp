// Where this rank listens for the others.
#pragma once

#include <string>
#include <vector>

#include "ddprun/plugin/comm_plugin.hpp"
#include "ddprun/plugin/network_interface.hpp"

namespace ddprun::gloo_backend {

// An address of one of these interfaces, as a number: that of comm.options.interface; else 127.0.0.1 if all ranks are
// on one host; else that of GLOO_SOCKET_IFNAME, PyTorch's variable; else host.address(). Of a named interface, it is
// host.address() if the interface has it, else the first one. Throws CommError(invalid) if the named interface cannot
// be used, or if there is none of these.
std::string listening_address(const Host& host, bool one_host, const std::vector<NetworkInterface>& interfaces);

}  // namespace ddprun::gloo_backend
