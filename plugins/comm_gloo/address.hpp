// Where this rank listens for the others.
#pragma once

#include <string>
#include <vector>

#include "ddprun/plugin/comm_plugin.hpp"
#include "ddprun/plugin/network_interface.hpp"

namespace ddprun::gloo_backend {

// A numeric address, the first of these: of the interface comm.options.interface; 127.0.0.1 if all ranks are in one
// network namespace; of the interface GLOO_SOCKET_IFNAME, PyTorch's variable; host.address(). If a named interface has
// host.address(), this is used, otherwise its first address. Throws CommError(invalid) if the named interface cannot be
// used, if there is no 127.0.0.1, or if no address is known.
std::string listening_address(const Host& host, bool one_network, const std::vector<NetworkInterface>& interfaces);

// For errors: "10.0.0.7 (eth0)", for an address of these interfaces.
std::string with_interface(const std::string& address, const std::vector<NetworkInterface>& interfaces);

// The end of errors that another interface would mend.
inline constexpr char kNameInterface[] =
    "; name an interface that leads to the other hosts in GLOO_SOCKET_IFNAME, or with --set "
    "comm.options.interface=NAME";

// Throws CommError(invalid) if `address`, on which that rank of another network namespace listens, is an address of
// these interfaces: then this rank would connect to its own host.
void require_elsewhere(int rank, const std::string& address, const std::vector<NetworkInterface>& interfaces);

}  // namespace ddprun::gloo_backend
