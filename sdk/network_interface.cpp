#include "ddprun/plugin/network_interface.hpp"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <memory>

namespace ddprun {

std::string numeric_address(const sockaddr* address) {
  const bool is_ip6 = address->sa_family == AF_INET6;
  if (!is_ip6 && address->sa_family != AF_INET) return "";
  std::array<char, NI_MAXHOST> text{};
  const socklen_t size = is_ip6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  return getnameinfo(address, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) == 0 ? text.data() : "";
}

std::vector<NetworkInterface> network_interfaces() {
  std::vector<NetworkInterface> interfaces;
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return interfaces;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(first, freeifaddrs);
  for (const ifaddrs* at = first; at != nullptr; at = at->ifa_next) {
    auto place = std::ranges::find(interfaces, at->ifa_name, &NetworkInterface::name);
    if (place == interfaces.end()) {
      const bool is_up = (at->ifa_flags & IFF_UP) != 0 && (at->ifa_flags & IFF_RUNNING) != 0;
      place = interfaces.insert(place, {at->ifa_name, is_up, (at->ifa_flags & IFF_LOOPBACK) != 0, {}});
    }
    if (at->ifa_addr == nullptr) continue;
    if (std::string address = numeric_address(at->ifa_addr); !address.empty()) place->addresses.push_back(address);
  }
  const auto order = [](const std::string& address) {
    return address.find(':') == std::string::npos ? 0 : address.find('%') == std::string::npos ? 1 : 2;
  };
  for (auto& one : interfaces) std::ranges::stable_sort(one.addresses, {}, order);
  return interfaces;
}

const NetworkInterface* interface_with(const std::vector<NetworkInterface>& interfaces, const std::string& address) {
  const auto has_it = [&](const NetworkInterface& one) { return std::ranges::count(one.addresses, address) > 0; };
  const auto found = std::ranges::find_if(interfaces, has_it);
  return found == interfaces.end() ? nullptr : &*found;
}

std::string list_of(const std::vector<NetworkInterface>& interfaces) {
  std::string text;
  for (const auto& one : interfaces) {
    text += (text.empty() ? "" : ", ") + one.name + " (";
    text += !one.is_up ? "down" : one.addresses.empty() ? "no address" : one.addresses.front();
    text += ")";
  }
  return text.empty() ? "none" : text;
}

}  // namespace ddprun
