// ddprun/plugin/network_interface.hpp: the network interfaces of this host.
#pragma once

#include <sys/socket.h>

#include <string>
#include <vector>

namespace ddprun {

struct NetworkInterface {
  std::string name;    // "eth0"
  bool is_up = false;  // up and connected
  bool is_loopback = false;
  std::vector<std::string> addresses;  // numeric: IPv4, then IPv6, then link-local IPv6 ("fe80::1%eth0")
};

// "10.0.0.1" or "fe80::1%eth0"; "" for an address that is neither IPv4 nor IPv6.
std::string numeric_address(const sockaddr* address);

// All interfaces, in the kernel's order; empty if the kernel does not report them. Any thread.
std::vector<NetworkInterface> network_interfaces();

// The one that has this numeric address; null if none has.
const NetworkInterface* interface_with(const std::vector<NetworkInterface>& interfaces,
                                              const std::string& address);

// For errors: "lo (127.0.0.1), eth0 (10.0.0.1), eth1 (down), eth2 (no address)".
std::string list_of(const std::vector<NetworkInterface>& interfaces);

}  // namespace ddprun
