#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <random>
#include <thread>

#include "comm/shared_table.hpp"
#include "support/error_of.hpp"
#include "support/process.hpp"
#include "testing/ranks.hpp"
#include "testing/temp_dir.hpp"

namespace ddprun::comm {
namespace {

using namespace std::chrono_literals;
using testing::As;
using testing::error_of;
using testing::failures;
using testing::Rank;
using testing::run_ranks;
using testing::TempDir;

constexpr auto kDeadline = 60s;

std::string table_in(const TempDir& folder) {
  return (folder.path() / "table").string();
}

// The n-th fingerprint of `rank`. All differ, so a test detects one that is read too early, too late or in part.
CallShape nth(uint64_t n, int rank) {
  const auto mark = n * 31 + static_cast<uint64_t>(rank);
  return {.number = n,
          .count = mark,
          .root = rank,
          .kind = Kind::broadcast,
          .dtype = static_cast<DType>(mark),
          .op = Op::max};
}

void exchange_many(Rank& rank, FingerprintExchange& exchange, uint64_t turns) {
  std::minstd_rand random(static_cast<unsigned>(rank.rank()));
  for (uint64_t n = 1; n <= turns; ++n) {
    if (random() % 64 == 0) std::this_thread::sleep_for(1ms);  // so that the others stop spinning, and sleep
    const auto prints = exchange.exchange(nth(n, rank.rank()), kDeadline);
    for (int peer = 0; peer < rank.size(); ++peer) {
      if (prints[static_cast<std::size_t>(peer)] == nth(n, peer)) continue;
      throw std::runtime_error("turn " + std::to_string(n) + ": a fingerprint that rank " + std::to_string(peer) +
                               " has not written");
    }
  }
}

}  // namespace

TEST_CASE(
    "each exchange gives every rank exactly the others' fingerprints, with more ranks than cores and delayed ranks") {
  for (const As as : {As::threads, As::processes}) {
    for (const int size : {1, 2, 5}) {
      const TempDir folder;
      const auto shared = map_table(table_in(folder), size);
      const auto outcomes = run_ranks(size, as, kDeadline, [&](Rank& rank) {
        const auto mine = as == As::threads ? shared : map_table(table_in(folder), size);
        exchange_many(rank, *shared_table(mine, rank.rank()), 2000);
      });
      CHECK(failures(outcomes) == "");
    }
  }
}

TEST_CASE("the table's file is removed when all ranks have joined") {
  const TempDir folder;
  const auto outcomes = run_ranks(2, As::processes, kDeadline, [&](Rank& rank) {
    const auto exchange = shared_table(map_table(table_in(folder), 2), rank.rank());
    rank.meet();
    if (!std::filesystem::exists(table_in(folder))) throw std::runtime_error("no file while ranks may still join");
    rank.meet();
    exchange->exchange(nth(1, rank.rank()), kDeadline);
  });
  CHECK(failures(outcomes) == "");
  CHECK_FALSE(std::filesystem::exists(table_in(folder)));
}

TEST_CASE("an exchange after an abort fails, even if the peers have already started it") {
  const TempDir folder;
  const auto table = map_table(table_in(folder), 2);
  const auto mine = shared_table(table, 0), theirs = shared_table(table, 1);
  std::thread peer([&] { error_of([&] { theirs->exchange(nth(1, 1), kDeadline); }); });
  testing::eventually([&] { return table->members()[1].slots[1].sequence == 1; });
  mine->abort();
  CHECK(error_of([&] { mine->exchange(nth(1, 0), kDeadline); }) == "5: aborted");
  peer.join();
}

TEST_CASE("an unusable table is refused") {
  const TempDir folder;
  const std::string path = table_in(folder);
  const auto table = map_table(path, 2);
  const auto exchange = shared_table(table, 1);
  CHECK(error_of([&] { shared_table(table, 1); }) ==
        "4: fingerprint table " + path + ": rank 1 is taken by process " + std::to_string(::getpid()));
  CHECK(error_of([&] { map_table(path, 3); }) == "4: fingerprint table " + path + ": made for 2 ranks, not for 3");
  const std::string nowhere = (folder.path() / "no" / "table").string();
  CHECK(error_of([&] { map_table(nowhere, 2); }) == "4: fingerprint table " + nowhere + ": No such file or directory");
}

}  // namespace ddprun::comm
