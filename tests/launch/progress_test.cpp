#include "launch/progress.hpp"

#include <doctest/doctest.h>

#include "ddprun/error.hpp"
#include "testing/temp_dir.hpp"

namespace {

using namespace ddprun;
using namespace ddprun::launch;
using ddprun::testing::TempDir;

TEST_CASE("another mapping of the table reads what a rank sets") {
  const TempDir folder;
  ProgressTable launcher(folder.path(), 3);
  ProgressTable rank(folder.path(), 3);
  const Progress states[] = {{0, Phase::start, -1}, {57, Phase::allreduce, 2}, {1LL << 39, Phase::done, 65533}};
  for (const Progress& state : states) {
    rank.set(2, state);
    CHECK(launcher.get(2).step == state.step);
    CHECK(launcher.get(2).phase == state.phase);
    CHECK(launcher.get(2).bucket == state.bucket);
    CHECK(launcher.get(1).step == 0);
    CHECK(launcher.get(1).bucket == -1);
  }
}

TEST_CASE("without its folder there is no table") {
  const TempDir folder;
  CHECK_THROWS_AS(ProgressTable(folder.path() / "gone", 2), Error);
}

TEST_CASE("a table in memory is that of its process alone") {
  ProgressTable one("", 1), other("", 1);
  one.set(0, {7, Phase::forward, -1});
  CHECK(one.get(0).step == 7);
  CHECK(other.get(0).step == 0);
}

TEST_CASE("a request to stop, of the launcher or of a rank, is seen in every mapping, and stays") {
  const TempDir folder;
  ProgressTable launcher(folder.path(), 2);
  ProgressTable rank(folder.path(), 2);
  rank.set(0, {7, Phase::forward, -1});
  CHECK_FALSE(launcher.stop_requested());
  CHECK_FALSE(rank.stop_requested());
  rank.request_stop();
  rank.set(0, {8, Phase::forward, -1});
  CHECK(launcher.stop_requested());
  CHECK(ProgressTable(folder.path(), 2).stop_requested());
  CHECK(launcher.get(0).step == 8);
}

}  // namespace
