// Where a host listens for the others, and the address by which they reach it.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "launch/net/address.hpp"
#include "launch/outer_address.hpp"
#include "support/error_of.hpp"
#include "support/text.hpp"

namespace ddprun::launch {
namespace {

using testing::contains;
using testing::error_of;

TEST_CASE("the route to an address of this host comes from that address") {
  CHECK(route_to("127.0.0.1").from == "127.0.0.1");
  CHECK(route_to("127.0.1.1").from == "127.0.0.1");
  CHECK(route_to("127.0.1.1").to == "127.0.1.1");
  CHECK(route_to("localhost").from == "127.0.0.1");
  if (const std::string address = outer_address(); !address.empty()) CHECK(route_to(address).from == address);
}

TEST_CASE("a name without an address is an error in one line") {
  const std::string error = error_of([] { route_to("no-such-host.invalid"); });
  CHECK(contains(error, "4: the master's name \"no-such-host.invalid\" cannot be resolved: "));
  CHECK(error.find('\n') == std::string::npos);
}

TEST_CASE("the store listens on the loopback interface alone if only processes of this host may come") {
  for (const char* name : {"localhost", "127.0.0.1", "127.0.1.1"}) {
    for (const bool only_this_host : {false, true}) {
      for (const auto& address : listening_addresses(name, only_this_host)) CHECK_MESSAGE(is_loopback(address), name);
    }
  }
  if (!std::ranges::all_of(addresses_of(host_name()), is_loopback))
    return;  // on Debian, which gives it the address 127.0.1.1
  for (const auto& address : listening_addresses(host_name(), true)) CHECK(is_loopback(address));
  CHECK(listening_addresses(host_name()).front() == "0.0.0.0");
}

}  // namespace
}  // namespace ddprun::launch
