// Addresses of hosts. All functions: any thread.
#pragma once

#include <string>
#include <vector>

namespace ddprun::launch {

std::string host_name();  // of this host

// The numeric addresses of a name or of a numeric address. Throws Error(rendezvous) if it cannot be resolved.
std::vector<std::string> addresses_of(const std::string& host);

// numeric: a numeric address.
bool is_loopback(const std::string& numeric);

bool is_own(const std::string& numeric);  // whether an interface of this host has the address

// Numeric addresses.
struct Route {
  std::string from;  // of this host: the source of packets to `to`; never an unspecified address such as 0.0.0.0
  std::string to;
};

// The route from this host to a name or an address. No packet is sent. If the name has several addresses, it is the
// route to the first that is no loopback address here, IPv4 before IPv6. Throws as addresses_of(), and
// Error(rendezvous) if there is no route.
Route route_to(const std::string& host);

// The numeric addresses on which this process listens for the others, if `host` names this host: those of the name. If
// the name means a loopback address here, as Debian's "127.0.1.1 host0" does, it means another address on the other
// hosts: then all addresses, 0.0.0.0 and ::; not with `only_this_host`, nor for "localhost" and numeric loopback
// addresses. Throws Error(rendezvous) if `host` is not this host.
std::vector<std::string> listening_addresses(const std::string& host, bool only_this_host = false);

// A TCP port, on the first of listening_addresses(host), on which no process listens now. Another process may take it
// afterwards. Throws as listening_addresses().
int free_port(const std::string& host);

// Which process listens on a TCP port of this host, for messages: " by pid 4711 (python3)"; empty if it cannot be
// found, for example because it belongs to another user.
std::string port_holder(int port) noexcept;

}  // namespace ddprun::launch
