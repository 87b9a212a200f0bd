// What ranks learn about each other when they meet: hosts, cores, addresses and restarts.
#include <doctest/doctest.h>
#include <sched.h>

#include <algorithm>
#include <string>

#include "ddprun/error.hpp"
#include "ddprun/plugin/host.hpp"
#include "launch/net/bytes.hpp"
#include "launch/outer_address.hpp"
#include "launch/rendezvous.hpp"
#include "launch/world.hpp"
#include "support/error_of.hpp"
#include "testing/temp_dir.hpp"

namespace ddprun::launch {
namespace {

using testing::error_of;

// The cores that this process may use, as ranks send them.
std::string own_cores() {
  cpu_set_t set;
  REQUIRE(sched_getaffinity(0, sizeof set, &set) == 0);
  return {reinterpret_cast<const char*>(&set), sizeof set};
}

struct Peer {
  int restarts = 0;
  std::string host = host_identity(), cores = own_cores(), reached = "127.0.0.1";
};

// Rank 0 of two ranks, which has `world`, after it has met rank 1.
World met(World world, const Peer& peer) {
  const testing::InTempDir here;
  const auto store = folder_store(".");
  world.size = 2;
  world.master_addr = "127.0.1.1";
  const auto restarts = static_cast<uint64_t>(peer.restarts);
  store->set(
      "places/1",
      ByteWriter().number(restarts).text(peer.host).text(peer.cores).text("10.9.9.9").text(peer.reached).bytes());
  locate(world, *store, std::chrono::milliseconds(1000));
  return world;
}

World of_launcher(int local_size) {
  World world;
  world.local_size = local_size;
  return world;
}

TEST_CASE("ranks with cores of their own use all of them; ranks that share cores divide them") {
  const int all = usable_cores(), half = std::max(1, all / 2);
  CHECK(met(of_launcher(2), {}).cores == half);
  CHECK(met(of_launcher(2), {.cores = "others"}).cores == all);
  CHECK(met(of_launcher(1), {.host = "another host"}).cores == all);
  CHECK(met(of_launcher(2), {.host = "another container"}).cores == half);
}

TEST_CASE("compute threads leave no core free if they are as many as the cores, or if each rank takes its share") {
  CHECK(fill_cores(1, 0, 2));
  CHECK(fill_cores(1, 2, 2));
  CHECK(fill_cores(2, 2, 2));
  CHECK(fill_cores(4, 2, 8));
  CHECK_FALSE(fill_cores(1, 2, 8));
  CHECK_FALSE(fill_cores(3, 2, 8));
  CHECK(fill_cores(2, 0, 4));
  CHECK_FALSE(fill_cores(2, 0, 3));  // a thread for each rank, and a free core
  CHECK_FALSE(fill_cores(3, 0, 8));  // two threads for each, and two free cores
  CHECK_FALSE(fill_cores(2, 0, 2));  // a thread for each rank, with no other thread to wait for
  CHECK_FALSE(fill_cores(8, 1, 2));
}

TEST_CASE("ranks that meet find out which of them share a host") {
  CHECK(met(of_launcher(0), {.host = "another host"}).local_size == 1);
  CHECK(met(of_launcher(0), {}).local_size == 2);
  CHECK(met(of_launcher(0), {}).local_rank == 0);
}

TEST_CASE("--set launch.nproc is compared when the ranks have met, if the launcher gives no number") {
  World world = of_launcher(0);
  world.nproc = 3;
  CHECK(error_of([&] {
          met(world, {.host = "another host"});
        }).starts_with("4: the number of ranks on this host = 1 contradicts launch.nproc = 3"));
}

TEST_CASE("ranks whose launchers give different world sizes do not wait for ranks that do not exist") {
  const testing::InTempDir here;
  const auto store = folder_store(".");
  store->set("world size", "2");
  World world;
  world.rank = 1;
  world.size = 3;
  world.master_addr = "127.0.0.1";
  CHECK(error_of([&] { locate(world, *store, std::chrono::milliseconds(1000)); }) ==
        "4: rank 0 has a job of 2 ranks, and rank 1 one of 3: give all ranks the same world size");
}

TEST_CASE("a host whose name is a loopback address there learns its address from the others") {
  CHECK(met(of_launcher(2), {}).address == "127.0.0.1");
  CHECK(met(of_launcher(2), {.reached = "203.0.113.1"}).address.empty());  // a gateway that passes the connections on
  if (const std::string outer = outer_address(); !outer.empty()) {
    CHECK(met(of_launcher(2), {.reached = outer}).address == outer);
  }
}

TEST_CASE("the ranks agree on the number of restarts: torchrun counts those of each host") {
  CHECK(met(of_launcher(2), {.restarts = 2}).restarts == 2);
}

}  // namespace
}  // namespace ddprun::launch
