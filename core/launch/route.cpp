#include "launch/route.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "ddprun/error.hpp"
#include "launch/unique_fd.hpp"

namespace ddprun::launch {
namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Addresses resolve(const std::string& host, int port) {
  addrinfo wanted = {};
  wanted.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &found); error != 0) {
    throw Error(ExitCode::rendezvous, "no address for the host \"" + host + "\": " + gai_strerror(error));
  }
  return {found, freeaddrinfo};
}

bool is_local_only(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    return ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr) >> 24 == 127;
  }
  return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
}

// This host's address for packets to `to`. Returns 0 or errno.
int local_address(const addrinfo& to, sockaddr_storage& local) {
  const UniqueFd socket(::socket(to.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  socklen_t size = sizeof local;
  if (socket.get() < 0 || connect(socket.get(), to.ai_addr, to.ai_addrlen) != 0) return errno;
  return getsockname(socket.get(), reinterpret_cast<sockaddr*>(&local), &size) == 0 ? 0 : errno;
}

// True for "127.0.0.1", "::1" and "localhost", which mean this host on every host.
bool means_loopback_everywhere(const std::string& host) {
  if (host == "localhost") return true;
  addrinfo wanted = {};
  wanted.ai_flags = AI_NUMERICHOST;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), nullptr, &wanted, &found) != 0) return false;
  freeaddrinfo(found);
  return true;
}

}  // namespace

std::string address_towards(const std::string& host, int port) {
  const Addresses all = resolve(host, port);
  int error = EADDRNOTAVAIL;
  std::string loopback;
  // IPv4 first, so that hosts with and without IPv6 choose the same family.
  for (const int family : {AF_INET, AF_INET6}) {
    for (const addrinfo* to = all.get(); to != nullptr; to = to->ai_next) {
      if (to->ai_family != family) continue;
      sockaddr_storage local = {};
      if (const int failed = local_address(*to, local); failed != 0) {
        error = failed;
        continue;
      }
      const std::string address = numeric_address(reinterpret_cast<const sockaddr*>(&local));
      if (!is_local_only(local)) return address;
      if (loopback.empty()) loopback = family == AF_INET ? "127.0.0.1" : "::1";
    }
  }
  if (loopback.empty()) {
    throw Error(ExitCode::rendezvous, "no route to the host \"" + host + "\": " + std::strerror(error));
  }
  if (means_loopback_everywhere(host)) return loopback;
  return only_address(network_interfaces(), "the name \"" + host + "\" means the loopback interface on this host");
}

std::string only_address(const std::vector<NetworkInterface>& interfaces, const std::string& why) {
  std::vector<NetworkInterface> usable;
  for (const auto& one : interfaces) {
    if (one.is_up && !one.is_loopback && !one.addresses.empty()) usable.push_back(one);
  }
  if (usable.size() == 1) return usable.front().addresses.front();
  throw Error(ExitCode::rendezvous,
              why + ", and " +
                  (usable.empty() ? "no other interface is up: this host has " + list_of(interfaces)
                                  : "several others are up: " + list_of(usable)) +
                  "; name one in GLOO_SOCKET_IFNAME, or with --set comm.options.interface=NAME");
}

}  // namespace ddprun::launch
