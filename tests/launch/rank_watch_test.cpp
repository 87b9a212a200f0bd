#include "launch/rank_watch.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "ddprun/error.hpp"
#include "launch/net/net_store.hpp"
#include "support/text.hpp"

namespace {

using namespace ddprun;
using namespace ddprun::launch;
using ddprun::testing::contains;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kLimit{20000};

// The links of all ranks, as if each were a process.
class Ranks {
 public:
  explicit Ranks(int size) : links_(static_cast<std::size_t>(size)), stuck_(static_cast<std::size_t>(size)) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size; ++rank) {
      threads.emplace_back([this, rank, size] {
        World world;
        world.rank = world.local_rank = rank;
        world.size = world.local_size = size;
        const auto at = static_cast<std::size_t>(rank);
        const auto stuck = [this, at](ExitCode, const std::string& cause) {
          const std::lock_guard lock(mutex_);
          stuck_[at] = cause;
        };
        links_[at] = std::make_unique<RankWatch>(address_, world, kLimit, stuck);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  ~Ranks() { links_.clear(); }

  RankWatch& operator[](std::size_t rank) { return *links_[rank]; }
  void kill(std::size_t rank) { links_[rank].reset(); }
  bool aborted(std::size_t rank) { return links_[rank]->abort_flag()->load() != 0; }
  std::string stuck(std::size_t rank) {
    const std::lock_guard lock(mutex_);
    return stuck_[rank];
  }

 private:
  const Secret secret_ = make_secret();
  const std::unique_ptr<StoreServer> server_ = store_server({"127.0.0.1", 0, secret_});
  const StoreAddress address_{"127.0.0.1", server_->port(), secret_};
  std::mutex mutex_;
  std::vector<std::unique_ptr<RankWatch>> links_;
  std::vector<std::string> stuck_;
};

bool becomes_true(const std::function<bool()>& condition) {
  const auto deadline = Clock::now() + kLimit;
  while (!condition()) {
    if (Clock::now() > deadline) return false;
    std::this_thread::sleep_for(milliseconds(5));
  }
  return true;
}

TEST_CASE("ranks that finish, in any order, end nobody") {
  Ranks ranks(3);
  for (const std::size_t rank : {0, 2}) {
    ranks[rank].finish();
    ranks.kill(rank);
  }
  // Longer than an abort takes to arrive.
  std::this_thread::sleep_for(milliseconds(500));
  CHECK_FALSE(ranks.aborted(1));
  ranks[1].finish();
}

TEST_CASE("a rank's own failure is the cause for ranks that lost it") {
  Ranks ranks(3);
  ranks[1].progress().set(1, {57, Phase::backward, -1});
  std::vector<std::string> causes(3);
  std::thread loser([&] {
    const auto cause = ranks[0].failed(Error(ExitCode::peer, "lost rank 1"));
    if (cause) causes[0] = cause->what();
  });
  std::this_thread::sleep_for(milliseconds(50));  // the consequence is known before its cause
  CHECK_FALSE(ranks[1].failed(Error(ExitCode::failure, "out of memory")));
  loser.join();
  CHECK(becomes_true([&] { return ranks.aborted(2); }));
  if (const auto cause = ranks[2].failed(Error(ExitCode::peer, "aborted"))) causes[2] = cause->what();
  for (const std::size_t rank : {0, 2}) {
    CAPTURE(rank);
    CHECK(contains(causes[rank], "rank 1 ("));
    CHECK(contains(causes[rank], "step 57 phase backward: out of memory"));
  }
}

TEST_CASE("ranks that vanish are named, and end the others") {
  Ranks ranks(4);
  // Each takes up to 100 ms, after which the first cause counts.
  std::thread first([&] { ranks.kill(2); }), second([&] { ranks.kill(3); });
  first.join();
  second.join();
  CHECK(becomes_true([&] { return ranks.aborted(0) && ranks.aborted(1); }));
  const auto cause = ranks[1].failed(Error(ExitCode::peer, "aborted"));
  REQUIRE(cause);
  CHECK(cause->code() == ExitCode::peer);
  CHECK(contains(cause->what(), "rank 2 ("));
  CHECK(contains(cause->what(), "rank 3 ("));
  CHECK(contains(cause->what(), "lost: the connection has ended"));
  CHECK(contains(cause->what(), " is lost too"));
}

TEST_CASE("a rank that does not end by itself is ended after the grace period") {
  Ranks ranks(2);
  ranks.kill(1);
  CHECK(becomes_true([&] { return !ranks.stuck(0).empty(); }));
  CHECK(contains(ranks.stuck(0), "rank 1 ("));
}

TEST_CASE("without another cause, a rank reports its own failure, and rank 0 says where the others are") {
  Ranks ranks(3);
  for (const std::size_t rank : {0, 1, 2}) {
    const auto local = static_cast<int>(rank);
    ranks[rank].progress().set(local, {7, rank == 2 ? Phase::data : Phase::allreduce, rank == 2 ? -1 : 0});
  }
  std::this_thread::sleep_for(milliseconds(1500));  // they report once a second
  const auto cause = ranks[0].failed(Error(ExitCode::peer, "the deadline passed"));
  REQUIRE(cause);
  CHECK(
      contains(cause->what(), "step 7 phase allreduce bucket 0: the deadline passed; rank 2 was in step 7 phase data"));
}

}  // namespace
