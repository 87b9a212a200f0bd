#include "launch/progress.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <barrier>
#include <filesystem>
#include <thread>
#include <vector>

#include "ddprun/error.hpp"
#include "tools/conformance/temp_dir.hpp"

namespace {

using namespace ddprun;
using namespace ddprun::launch;
using ddprun::testing::TempDir;

TEST_CASE("another mapping of the table reads what a rank sets") {
  const TempDir folder;
  const auto launcher = ProgressTable::create(folder.path(), 3);
  const auto rank = ProgressTable::open(folder.path(), 3);
  const Progress states[] = {{0, Phase::start, -1}, {57, Phase::allreduce, 2}, {1LL << 39, Phase::done, 65533}};
  for (const Progress& state : states) {
    rank->set(2, state);
    CHECK(launcher->get(2).step == state.step);
    CHECK(launcher->get(2).phase == state.phase);
    CHECK(launcher->get(2).bucket == state.bucket);
    CHECK(launcher->get(1).step == 0);
    CHECK(launcher->get(1).bucket == -1);
  }
}

TEST_CASE("a table for another number of ranks, or a file that is no table, is refused") {
  const TempDir folder;
  CHECK_THROWS_AS(ProgressTable::open(folder.path(), 2), Error);
  const auto table = ProgressTable::create(folder.path(), 2);
  CHECK_THROWS_AS(ProgressTable::open(folder.path(), 3), Error);
  CHECK_THROWS_AS(ProgressTable::create(folder.path(), 2), Error);
  CHECK_THROWS_AS(table->get(2), Error);
  folder.write("progress", std::string(std::filesystem::file_size(folder.path() / "progress"), 'x'));
  CHECK_THROWS_AS(ProgressTable::open(folder.path(), 2), Error);
}

TEST_CASE("there is no stop before a request; then it stays one step after the latest begun") {
  const TempDir folder;
  const auto table = ProgressTable::create(folder.path(), 2);
  table->set(0, {7, Phase::forward, -1});
  table->set(1, {6, Phase::allreduce, 0});
  CHECK(table->stop_after() == 0);
  CHECK(table->request_stop() == 8);
  table->set(0, {8, Phase::forward, -1});
  CHECK(table->request_stop() == 8);
  CHECK(ProgressTable::open(folder.path(), 2)->stop_after() == 8);
}

// Here only an allreduce synchronises the ranks: none ends a step before all have begun it.
void stop_at_some_moment(int ranks, std::chrono::microseconds moment) {
  const TempDir folder;
  const auto table = ProgressTable::create(folder.path(), ranks);
  std::barrier allreduce(ranks);
  std::vector<int64_t> stopped_after(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const auto mine = ProgressTable::open(folder.path(), ranks);
      for (int64_t step = 1;; ++step) {
        mine->set(rank, {step, Phase::forward, -1});
        allreduce.arrive_and_wait();
        const int64_t last = mine->stop_after();
        if (last == 0 || step < last) continue;
        stopped_after[static_cast<std::size_t>(rank)] = step;
        return;
      }
    });
  }
  std::this_thread::sleep_for(moment);
  const int64_t last = table->request_stop();
  for (std::thread& thread : threads) thread.join();
  for (const int64_t step : stopped_after) REQUIRE(step == last);
}

TEST_CASE("all ranks stop after the same step, whenever the request comes") {
  for (int round = 0; round < 200; ++round) stop_at_some_moment(3, std::chrono::microseconds(round * 7));
}

}  // namespace
