// Where a host listens for the others, and the address by which they reach it.
#include <doctest/doctest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "ddprun/plugin/network_interface.hpp"
#include "launch/net/address.hpp"
#include "launch/rendezvous.hpp"
#include "support/error_of.hpp"
#include "support/text.hpp"
#include "testing/temp_dir.hpp"

namespace ddprun::launch {
namespace {

using testing::contains;
using testing::error_of;

// An address of this host that other hosts may know; "" without one.
std::string outer_address() {
  for (const auto& one : network_interfaces()) {
    if (one.is_up && !one.is_loopback && !one.addresses.empty()) return one.addresses.front();
  }
  std::puts("skipped: this host has the loopback interface only");
  return "";
}

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
  if (!is_local(host_name())) return;  // on Debian, which gives it the address 127.0.1.1
  for (const auto& address : listening_addresses(host_name(), true)) CHECK(is_loopback(address));
  CHECK(listening_addresses(host_name()).front() == "0.0.0.0");
}

// The address of rank 0's host, whose name is a loopback address there, if rank 1 reaches it at `reached`.
World after_rendezvous(const std::string& reached) {
  const testing::InTempDir here;
  const auto store = folder_store(".");
  World world;
  world.size = 2;
  world.local_size = 2;
  world.master_addr = "127.0.1.1";
  world.restarts = 1;
  store->set("cores/1", "");
  store->set("routes/1", "2 10.9.9.9 " + reached);
  set_location(world, *store, std::chrono::milliseconds(1000));
  return world;
}

TEST_CASE("a host whose name is a loopback address there learns its address from the others") {
  CHECK(after_rendezvous("127.0.0.1").address == "127.0.0.1");
  CHECK(after_rendezvous("203.0.113.1").address.empty());  // of a gateway that passes the connections on
  if (const std::string outer = outer_address(); !outer.empty()) CHECK(after_rendezvous(outer).address == outer);
}

TEST_CASE("the ranks agree on the number of restarts: torchrun counts those of each host") {
  CHECK(after_rendezvous("127.0.0.1").restarts == 2);
}

}  // namespace
}  // namespace ddprun::launch
