#include "launch/net/address.hpp"

#include <ifaddrs.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>  // Boost.Asio 1.74 needs it and does not include it

#include <boost/asio.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <thread>

#include "ddprun/error.hpp"

namespace ddprun::launch {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kResolveLimit{2000};

std::string numeric(const sockaddr* address) {
  const socklen_t size = address->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  std::array<char, NI_MAXHOST> text{};
  const int error = ::getnameinfo(address, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  return error == 0 ? text.data() : "";
}

struct Own {
  std::string interface;
  std::string address;
};

std::vector<Own> own_addresses() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, ::freeifaddrs);
  std::vector<Own> found;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family == AF_INET || family == AF_INET6) found.push_back({entry->ifa_name, numeric(entry->ifa_addr)});
  }
  return found;
}

}  // namespace

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown host";
}

std::vector<std::string> addresses_of(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  const auto give_up = Clock::now() + kResolveLimit;
  while (true) {
    addrinfo* list = nullptr;
    const int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &list);
    if (error == 0) {
      const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(list, ::freeaddrinfo);
      std::vector<std::string> found;
      for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
        found.push_back(numeric(entry->ai_addr));
      }
      return found;
    }
    if (Clock::now() >= give_up || error == EAI_FAMILY || error == EAI_MEMORY) {
      throw Error(ExitCode::rendezvous, "the master's name \"" + host + "\" cannot be resolved: " +
                                            ::gai_strerror(error) + "; give a name or an address that this host knows");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
}

bool is_loopback(const std::string& numeric) {
  return numeric.starts_with("127.") || numeric == "::1";
}

bool is_local(const std::string& host) {
  const auto addresses = addresses_of(host);
  return std::all_of(addresses.begin(), addresses.end(), is_loopback);
}

std::string listening_address(const std::string& host) {
  const auto own = own_addresses();
  const auto addresses = addresses_of(host);
  for (const std::string& address : addresses) {
    const auto is_it = [&](const Own& each) { return each.address == address; };
    if (is_loopback(address) || std::any_of(own.begin(), own.end(), is_it)) return address;
  }
  std::string here;
  for (const Own& each : own) {
    if (!is_loopback(each.address)) here += (here.empty() ? "" : ", ") + each.address + " (" + each.interface + ")";
  }
  throw Error(ExitCode::rendezvous,
              "the master " + host + " is " + addresses.front() +
                  ", which is not an address of this host, on which the first rank runs; it has " +
                  (here.empty() ? "only loopback" : here));
}

int free_port(const std::string& host) {
  const boost::asio::ip::tcp::endpoint any(boost::asio::ip::make_address(listening_address(host)), 0);
  boost::asio::io_context context;
  return boost::asio::ip::tcp::acceptor(context, any).local_endpoint().port();
}

}  // namespace ddprun::launch
