// Addresses of hosts.
#pragma once

#include <string>
#include <vector>

namespace ddprun::launch {

std::string host_name();  // of this host

// The numeric addresses of a name or of a numeric address. Throws Error(rendezvous) if it cannot be resolved within two
// seconds.
std::vector<std::string> addresses_of(const std::string& host);

bool is_loopback(const std::string& numeric);
// Whether only processes of this host can reach this name.
bool is_local(const std::string& host);

// The address on which the process at `host`, this one, listens for the others. Throws Error(rendezvous) if `host` is
// not this host.
std::string listening_address(const std::string& host);

// A port of listening_address(host) on which no process listens now. Throws Error(rendezvous).
int free_port(const std::string& host);

}  // namespace ddprun::launch
