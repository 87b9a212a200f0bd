// The address by which other hosts reach this one.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "launch/net/address.hpp"
#include "launch/route.hpp"
#include "support/contains.hpp"
#include "support/error_of.hpp"

namespace ddprun::launch {
namespace {

using testing::contains;
using testing::error_of;

TEST_CASE("towards an address of this host, the address is that one") {
  bool found_one = false;
  for (const auto& one : network_interfaces()) {
    if (!one.is_up || one.is_loopback) continue;
    for (const auto& address : one.addresses) {
      CHECK(address_towards(address, 29500) == address);
      found_one = true;
    }
  }
  if (!found_one) std::puts("skipped: this host has the loopback interface only");
}

TEST_CASE("a loopback address as such means that all ranks are on this host's network") {
  CHECK(address_towards("127.0.0.1", 29500) == "127.0.0.1");
  CHECK(address_towards("127.0.1.1", 29500) == "127.0.0.1");
  CHECK(address_towards("localhost", 29500) == "127.0.0.1");
}

TEST_CASE("for processes of this host alone, the store listens on the loopback interface alone") {
  std::vector<std::string> names = {"localhost", "127.0.0.1", "127.0.1.1"};
  if (is_local(host_name())) names.push_back(host_name());  // on Debian, which gives it the address 127.0.1.1
  for (const auto& name : names) {
    for (const auto& address : listening_addresses(name, true)) {
      CHECK_MESSAGE((address.starts_with("127.") || address == "::1"), name, " gives ", address);
    }
  }
}

TEST_CASE("a name without an address is an error in one line") {
  const std::string error = error_of([] { address_towards("no-such-host.invalid", 29500); });
  CHECK(error.starts_with("4: no address for the host \"no-such-host.invalid\": "));
  CHECK(error.find('\n') == std::string::npos);
}

// Of a host with these interfaces besides lo.
std::string only_of(const std::vector<NetworkInterface>& others) {
  std::vector<NetworkInterface> all = {{"lo", true, true, {"127.0.0.1", "::1"}}};
  all.insert(all.end(), others.begin(), others.end());
  std::string address;
  const std::string error = error_of([&] { address = only_address(all, "so"); });
  return address.empty() ? error : address;
}

TEST_CASE("if the name of the master means loopback here, the only interface that is up counts") {
  const NetworkInterface eth0 = {"eth0", true, false, {"10.0.0.7", "fd00::7"}};
  const NetworkInterface eth1 = {"eth1", true, false, {"10.1.0.7"}};
  const NetworkInterface down = {"eth2", false, false, {"10.2.0.7"}};
  const NetworkInterface without = {"tun0", true, false, {}};
  const std::string advice = "; name one in GLOO_SOCKET_IFNAME, or with --set comm.options.interface=NAME";
  CHECK(only_of({eth0}) == "10.0.0.7");
  CHECK(only_of({without, eth0, down}) == "10.0.0.7");
  CHECK(only_of({eth0, eth1}) == "4: so, and several others are up: eth0 (10.0.0.7), eth1 (10.1.0.7)" + advice);
  CHECK(only_of({down}) == "4: so, and no other interface is up: this host has lo (127.0.0.1), eth2 (down)" + advice);
}

}  // namespace
}  // namespace ddprun::launch
