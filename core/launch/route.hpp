// The address by which the hosts of a job reach this one.
#pragma once

#include <string>
#include <vector>

#include "ddprun/plugin/network_interface.hpp"

namespace ddprun::launch {

// The numeric source address of packets from this host to `host` (a name or an address). No packet is sent. If `host`
// is this host, the result is the address of `host`. If the name is a loopback address here, as Debian's 127.0.1.1 is,
// it is the address of the only other interface that is up. It is "127.0.0.1" or "::1" only if `host` is such an
// address or "localhost": then every rank is on this host's network. Never an unspecified address such as 0.0.0.0. Any
// thread.
//
// Throws Error(rendezvous): the name has no address, there is no route, or there are several interfaces to choose from.
std::string address_towards(const std::string& host, int port);

// The first address of the only interface that is up, has an address, and is not the loopback interface. Throws
// Error(rendezvous) if there is not exactly one; `why` begins the message.
std::string only_address(const std::vector<NetworkInterface>& interfaces, const std::string& why);

}  // namespace ddprun::launch
