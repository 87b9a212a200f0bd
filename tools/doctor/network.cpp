// Interfaces and names.
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>

#include "base/subprocess.hpp"
#include "base/unique_fd.hpp"
#include "ddprun/error.hpp"
#include "tools/doctor/collect.hpp"
#include "tools/doctor/files.hpp"

namespace ddprun::doctor {
namespace {

constexpr std::chrono::seconds kResolverLimit{10};

// "" for an address that is not IPv4 or IPv6, or valid on one link only.
std::string address_text(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address == nullptr) return "";
  if (address->sa_family == AF_INET) {
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, text, sizeof text);
  } else if (address->sa_family == AF_INET6) {
    const in6_addr& six = reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
    if (!IN6_IS_ADDR_LINKLOCAL(&six)) ::inet_ntop(AF_INET6, &six, text, sizeof text);
  }
  return text;
}

Interface& find_or_add(std::vector<Interface>& interfaces, const std::string& name) {
  const auto found =
      std::find_if(interfaces.begin(), interfaces.end(), [&](const Interface& one) { return one.name == name; });
  if (found != interfaces.end()) return *found;
  interfaces.emplace_back().name = name;
  return interfaces.back();
}

int64_t mtu_of(const std::string& name) {
  const UniqueFd any(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  name.copy(request.ifr_name, sizeof request.ifr_name - 1);
  return any && ::ioctl(any.get(), SIOCGIFMTU, &request) == 0 ? request.ifr_mtu : 0;
}

// The interfaces of default routes, the one with the lowest metric first; of IPv4, or else of IPv6.
std::string default_route(const std::string& root) {
  std::string best;
  int64_t least = INT64_MAX;
  std::istringstream four(text_of(root + "/proc/net/route"));
  for (std::string line; std::getline(four, line);) {
    std::istringstream words(line);
    std::string name, destination, gateway, flags, references, use, metric, mask;
    words >> name >> destination >> gateway >> flags >> references >> use >> metric >> mask;
    const auto cost = number_in(metric);
    if (destination != "00000000" || mask != "00000000" || !cost || *cost >= least) continue;
    least = *cost;
    best = name;
  }
  if (!best.empty()) return best;
  std::istringstream six(text_of(root + "/proc/net/ipv6_route"));
  for (std::string line; std::getline(six, line);) {
    std::istringstream words(line);
    std::string destination, length, source, source_length, gateway, metric, references, use, flags, name;
    words >> destination >> length >> source >> source_length >> gateway >> metric >> references >> use >> flags >>
        name;
    const bool all = destination == std::string(32, '0') && length == "00";
    if (!all || gateway == std::string(32, '0') || name == "lo") continue;
    const int64_t cost = std::strtoll(metric.c_str(), nullptr, 16);
    if (cost >= least) continue;
    least = cost;
    best = name;
  }
  return best;
}

std::string addresses_of(const std::string& name) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (const int error = ::getaddrinfo(name.c_str(), nullptr, &hints, &list); error != 0) {
    throw Error(ExitCode::failure, ::gai_strerror(error));
  }
  std::string lines;
  for (const addrinfo* one = list; one != nullptr; one = one->ai_next) {
    const std::string text = address_text(one->ai_addr);
    if (!text.empty()) lines += text + "\n";
  }
  ::freeaddrinfo(list);
  return lines;
}

}  // namespace

std::vector<Interface> interfaces(const std::string& root) {
  std::vector<Interface> list;
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return list;
  std::map<std::string, int> fours;  // IPv4 addresses of each interface so far
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    Interface& interface = find_or_add(list, one->ifa_name);
    interface.up = (one->ifa_flags & IFF_UP) != 0 && (one->ifa_flags & IFF_RUNNING) != 0;
    interface.loopback = (one->ifa_flags & IFF_LOOPBACK) != 0;
    const std::string address = address_text(one->ifa_addr);
    const bool four = !address.empty() && one->ifa_addr->sa_family == AF_INET;
    if (four) interface.addresses.insert(interface.addresses.begin() + fours[one->ifa_name]++, address);
    if (!four && !address.empty()) interface.addresses.push_back(address);
  }
  ::freeifaddrs(all);
  for (Interface& interface : list) interface.mtu = mtu_of(interface.name);
  read_links(root, list);
  return list;
}

void read_links(const std::string& root, std::vector<Interface>& interfaces) {
  const std::string route = default_route(root);
  for (Interface& interface : interfaces) {
    interface.default_route = interface.name == route;
    // Reading it fails for interfaces without a link; virtual ones report -1 or 4294967295.
    const auto speed = number_of(root + "/sys/class/net/" + interface.name + "/speed");
    if (speed && *speed > 0 && *speed < UINT32_MAX) interface.speed = speed;
  }
}

std::vector<std::string> rdma_devices(const std::string& root) {
  std::vector<std::string> names;
  std::error_code error;
  const std::filesystem::path folder = root + "/sys/class/infiniband";
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    names.push_back(entry->path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// In a child process, because the resolver may wait for a name server for minutes.
Resolved resolve(const std::string& name) {
  Resolved resolved;
  resolved.name = name;
  try {
    std::istringstream lines(text_from_subprocess([&] { return addresses_of(name); }, kResolverLimit));
    for (std::string line; std::getline(lines, line);) {
      const bool known =
          std::find(resolved.addresses.begin(), resolved.addresses.end(), line) != resolved.addresses.end();
      if (!known) resolved.addresses.push_back(line);
    }
    if (resolved.addresses.empty()) resolved.error = "no IPv4 or global IPv6 address";
  } catch (const Error& error) {
    resolved.error = error.what();
  }
  return resolved;
}

}  // namespace ddprun::doctor
