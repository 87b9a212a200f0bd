#include "launch/net/address.hpp"

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
#include "ddprun/plugin/network_interface.hpp"
#include "launch/route.hpp"

namespace ddprun::launch {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kResolveLimit{1500};

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
        found.push_back(numeric_address(entry->ai_addr));
      }
      return found;
    }
    if (Clock::now() >= give_up || error == EAI_FAMILY || error == EAI_MEMORY) {
      throw Error(ExitCode::rendezvous, "the master's name \"" + host + "\" cannot be resolved: " +
                                            ::gai_strerror(error) + "; give a name or an address that this host knows");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

bool is_loopback(const std::string& numeric) {
  return numeric.starts_with("127.") || numeric == "::1";
}

bool is_local(const std::string& host) {
  const auto addresses = addresses_of(host);
  return std::all_of(addresses.begin(), addresses.end(), is_loopback);
}

std::vector<std::string> listening_addresses(const std::string& host, bool only_this_host) {
  const auto interfaces = network_interfaces();
  const auto is_own = [&](const std::string& address) {
    return std::any_of(interfaces.begin(), interfaces.end(), [&](const NetworkInterface& each) {
      return std::find(each.addresses.begin(), each.addresses.end(), address) != each.addresses.end();
    });
  };
  std::vector<std::string> found;
  const auto add = [&](const std::string& address) {
    if (std::find(found.begin(), found.end(), address) == found.end()) found.push_back(address);
  };
  const auto addresses = addresses_of(host);
  for (const std::string& address : addresses) {
    if (is_loopback(address) || is_own(address)) add(address);
  }
  if (found.empty()) {
    throw Error(ExitCode::rendezvous,
                "the master " + host + " is " + addresses.front() +
                    ", which is no address of this host, where the first rank is; this host has " +
                    list_of(interfaces));
  }
  if (!is_loopback(found.front()) || only_this_host) return found;
  try {
    add(address_towards(host, 0));
  } catch (const Error&) {
    // No other interface, or several: the other hosts report that they cannot reach this one.
  }
  return found;
}

int free_port(const std::string& host) {
  const boost::asio::ip::tcp::endpoint any(boost::asio::ip::make_address(listening_addresses(host).front()), 0);
  boost::asio::io_context context;
  return boost::asio::ip::tcp::acceptor(context, any).local_endpoint().port();
}

}  // namespace ddprun::launch
