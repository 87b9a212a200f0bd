#include "launch/cores.hpp"

#include <doctest/doctest.h>
#include <sched.h>

#include <algorithm>

#include "ddprun/plugin/host_identity.hpp"
#include "launch/rendezvous.hpp"
#include "testing/temp_dir.hpp"

namespace {

using namespace ddprun::launch;
using ddprun::testing::InTempDir;

TEST_CASE("ranks with cores of their own use all of them; ranks that share cores divide them") {
  CHECK(cores_of_rank({"1111"}, 0) == 4);
  CHECK(cores_of_rank({"1111", "1111"}, 0) == 2);
  CHECK(cores_of_rank({"1111", "1111", "1111"}, 2) == 1);
  CHECK(cores_of_rank({"1100", "0011"}, 0) == 2);
  CHECK(cores_of_rank({"11", "0011", "000011"}, 1) == 2);
  CHECK(cores_of_rank({"1111", "1111", "00001111"}, 2) == 4);  // two share, one does not
  CHECK(cores_of_rank({"1111", "1111", "00001111"}, 0) == 2);
  CHECK(cores_of_rank({"1", "1", "1"}, 1) == 1);  // never less than one
  CHECK(cores_of_rank({"", ""}, 0) == 0);         // not known
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

TEST_CASE("this process's mask has as many cores as the kernel says") {
  cpu_set_t set;
  REQUIRE(sched_getaffinity(0, sizeof set, &set) == 0);
  const std::string mask = core_mask();
  CHECK(std::count(mask.begin(), mask.end(), '1') == CPU_COUNT(&set));
  CHECK(mask.back() == '1');
}

// Rank 0 of two, whose peer is on this host and has this mask; the launcher reports `local_size`.
int cores_beside(const std::string& host, const std::string& mask, int local_size) {
  const InTempDir here;
  const auto store = folder_store(".");
  store->set("cores/1", host + " " + mask);
  World first;
  first.size = 2;
  first.local_size = local_size;
  share_cores(first, *store, std::chrono::milliseconds(1000));
  return first.cores;
}

TEST_CASE("ranks that meet find out which of them share cores") {
  const std::string mask = core_mask(), here = ddprun::host_identity();
  const auto all = static_cast<int>(std::count(mask.begin(), mask.end(), '1'));
  const int half = std::max(1, all / 2);
  CHECK(cores_beside(here, mask, 2) == half);
  CHECK(cores_beside(here, std::string(mask.size(), '0') + "1", 2) == all);
  CHECK(cores_beside("another host", mask, 1) == all);
  CHECK(cores_beside("another container", mask, 2) == half);  // the launcher says that they share a host
}

}  // namespace
