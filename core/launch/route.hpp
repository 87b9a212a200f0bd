// The address by which the hosts of a job reach this one.
#pragma once

#include <string>
#include <vector>

#include "ddprun/plugin/network_interface.hpp"

namespace ddprun::launch {

// The address that the kernel gives to packets from this host to `host` (a name or an address), as a number. No packet
// is sent. If `host` is this host, the address of `host`; if its name means the loopback interface here, as Debian's
// 127.0.1.1 does, the address of the only other interface that is up. "127.0.0.1" or "::1" only if `host` is such an
// address or "localhost": then every rank is on this host's network. Never an unspecified address such as 0.0.0.0.
//
// Throws Error(rendezvous): the name has no address, there is no route, or there are several interfaces to choose from.
std::string address_towards(const std::string& host, int port);

// The first address of the only interface that is up, has an address, and is not the loopback interface. Throws
// Error(rendezvous) if there is not exactly one; `why` begins the message.
std::string only_address(const std::vector<NetworkInterface>& interfaces, const std::string& why);

}  // namespace ddprun::launch
