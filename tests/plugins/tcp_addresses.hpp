// This host's TCP sockets over IPv4.
#pragma once

#include <arpa/inet.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>

namespace ddprun::testing {

// The local addresses of the connections and of the sockets that listen, in this network namespace.
inline std::string tcp_addresses() {
  std::ifstream table("/proc/self/net/tcp");
  std::set<std::string> addresses;
  std::string line;
  std::getline(table, line);
  while (std::getline(table, line)) {
    std::istringstream fields(line);
    std::string number, local, remote, state;
    fields >> number >> local >> remote >> state;
    if (state != "01" && state != "0A") continue;
    const in_addr address = {static_cast<in_addr_t>(std::stoul(local.substr(0, 8), nullptr, 16))};
    addresses.insert(inet_ntoa(address));
  }
  std::string text;
  for (const auto& address : addresses) text += (text.empty() ? "" : " ") + address;
  return text;
}

}  // namespace ddprun::testing
