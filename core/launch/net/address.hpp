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

// The addresses on which the process at `host`, this one, listens for the others: those of `host`. If the name means
// the loopback interface here, as Debian's 127.0.1.1 does, also the address of the only other interface that is up,
// because the name means that address on other hosts; not if only processes of this host may come. Throws
// Error(rendezvous) if `host` is not this host.
std::vector<std::string> listening_addresses(const std::string& host, bool only_this_host = false);

// A port of the first of listening_addresses(host) on which no process listens now. Throws Error(rendezvous).
int free_port(const std::string& host);

}  // namespace ddprun::launch
