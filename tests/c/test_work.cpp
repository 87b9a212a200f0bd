#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <future>

#include "joined.hpp"

namespace ddprun::c {
namespace {

TEST_CASE("a work has several collectives, and goes on while its rank does something else") {
  const auto outcomes = run_ranks(2, As::threads, kDeadline, [](Rank& rank) {
    const auto group = join(options_of(rank, "shm"));
    std::vector<float> small{1}, large(100'000, 2);
    std::vector<double> other{static_cast<double>(rank.rank())};
    const auto first =
        start(group.get(), DDPRUN_ALLREDUCE, {in_place(small, DDPRUN_FLOAT32), in_place(large, DDPRUN_FLOAT32)});
    auto call = in_place(other, DDPRUN_FLOAT64);
    call.root = 1;
    const auto second = start(group.get(), DDPRUN_BROADCAST, {call});
    const auto third = start(group.get(), DDPRUN_BARRIER, {});
    require(finish(third) == DDPRUN_OK);
    require(ddprun_wait(first.get(), 0) == 1 && ddprun_wait(second.get(), 0) == 1, "they have not run in order");
    require(small[0] == 2 && large[0] == 4 && large.back() == 4 && other[0] == 1, "wrong results");
  });
  CHECK(failures(outcomes) == "");
}

TEST_CASE("ranks exchange blocks of different sizes, also over each plugin") {
  for (const char* backend : {"shm", "gloo", "ucx"}) {
    CAPTURE(backend);
    const auto outcomes = run_ranks(3, As::threads, kDeadline, [&](Rank& rank) {
      const auto group = join(options_of(rank, backend));
      // Rank i sends 10 * i + j bytes of the value 10 * i + j to rank j.
      std::vector<std::vector<uint8_t>> sent, received;
      std::vector<ddprun_block> send, recv;
      for (int peer = 0; peer < 3; ++peer) {
        const auto there = static_cast<std::size_t>(10 * rank.rank() + peer);
        const auto here = static_cast<std::size_t>(10 * peer + rank.rank());
        sent.emplace_back(there, static_cast<uint8_t>(there));
        received.emplace_back(here);
        send.push_back({sent.back().data(), there});
        recv.push_back({received.back().data(), here});
      }
      const ddprun_exchange exchange{sizeof exchange, DDPRUN_HOST, send.data(), recv.data(), nullptr};
      ddprun_work* work = nullptr;
      require(ddprun_start_exchange(group.get(), &exchange, &work) == DDPRUN_OK);
      send.clear();
      recv.clear();
      require(finish(OwnedWork(work)) == DDPRUN_OK);
      for (const auto& block : received) {
        require(block == std::vector<uint8_t>(block.size(), static_cast<uint8_t>(block.size())), "wrong bytes");
      }
    });
    CHECK(failures(outcomes) == "");
  }
}

TEST_CASE("a wait ends without the work when its time is up") {
  const auto outcomes = run_ranks(2, As::threads, kDeadline, [](Rank& rank) {
    const auto group = join(options_of(rank, "shm"));
    std::vector<float> numbers{1};
    if (rank.rank() == 1) rank.meet();
    const auto work = start(group.get(), DDPRUN_ALLREDUCE, {in_place(numbers, DDPRUN_FLOAT32)});
    if (rank.rank() == 0) {
      require(ddprun_wait(work.get(), 0) == 0 && ddprun_wait(work.get(), 30) == 0, "ended without its peer");
      rank.meet();
    }
    require(finish(work) == DDPRUN_OK && numbers[0] == 2);
  });
  CHECK(failures(outcomes) == "");
}

TEST_CASE("what shall run after a work runs once, whether the work has ended or not") {
  const auto outcomes = run_ranks(2, As::threads, kDeadline, [](Rank& rank) {
    const auto group = join(options_of(rank, "shm"));
    std::atomic<int> calls{0};
    const ddprun_done_fn count = [](void* context) { ++*static_cast<std::atomic<int>*>(context); };
    std::vector<float> numbers{1};
    if (rank.rank() == 1) rank.meet();
    const auto before = start(group.get(), DDPRUN_ALLREDUCE, {in_place(numbers, DDPRUN_FLOAT32)});
    ddprun_then(before.get(), count, &calls);
    if (rank.rank() == 0) {
      require(calls == 0, "called before the end");
      rank.meet();
    }
    require(finish(start(group.get(), DDPRUN_BARRIER, {})) == DDPRUN_OK);
    require(calls == 1, "not called once at the end");
    const auto after = start(group.get(), DDPRUN_BARRIER, {});
    require(finish(after) == DDPRUN_OK);
    ddprun_then(after.get(), count, &calls);
    require(calls == 2, "not called at once");
  });
  CHECK(failures(outcomes) == "");
}

TEST_CASE("arguments that can never work fail one work, and the group goes on") {
  const auto outcomes = run_ranks(2, As::processes, kDeadline, [](Rank& rank) {
    const auto group = join(options_of(rank, "gloo"));
    std::vector<float> numbers{1};
    auto call = in_place(numbers, DDPRUN_FLOAT32);
    call.root = 7;
    const auto work = start(group.get(), DDPRUN_BROADCAST, {call});
    require(finish(work) == DDPRUN_INVALID, "a root that does not exist");
    require(std::string(ddprun_error()).find("rank " + std::to_string(rank.rank())) != std::string::npos);
    ddprun_work* nothing = nullptr;
    require(ddprun_start(group.get(), 99, nullptr, 0, &nothing) == DDPRUN_INVALID, "a kind that does not exist");
    require(allreduce(group, numbers) == DDPRUN_OK && numbers[0] == 2);
  });
  CHECK(failures(outcomes) == "");
}

TEST_CASE("the end of a group ends its works, and their results stay") {
  for (const bool aborts : {false, true}) {
    CAPTURE(aborts);
    const auto outcomes = run_ranks(2, As::processes, kDeadline, [&](Rank& rank) {
      auto group = join(options_of(rank, "shm"));
      std::vector<float> numbers{1};
      if (rank.rank() == 0) {
        const auto work = start(group.get(), DDPRUN_ALLREDUCE, {in_place(numbers, DDPRUN_FLOAT32)});
        const auto queued = start(group.get(), DDPRUN_BARRIER, {});
        if (aborts) ddprun_group_abort(group.get());
        if (!aborts) group.reset();
        require(finish(work) == DDPRUN_ABORTED && finish(queued) == DDPRUN_ABORTED);
      }
      rank.meet();
    });
    CHECK(failures(outcomes) == "");
  }
}

TEST_CASE("a group that has nothing to do is destroyed without harm to a peer in its last collective") {
  const auto outcomes = run_ranks(2, As::processes, kDeadline, [](Rank& rank) {
    for (int i = 0; i < 20; ++i) {
      const auto group = join(options_of(rank, "shm"));
      require(finish(start(group.get(), DDPRUN_BARRIER, {})) == DDPRUN_OK);
    }
  });
  CHECK(failures(outcomes) == "");
}

TEST_CASE("what runs after a work may destroy the group") {
  const auto outcomes = run_ranks(2, As::processes, kDeadline, [](Rank& rank) {
    ddprun_group* group = join(options_of(rank, "shm")).release();
    const auto work = start(group, DDPRUN_BARRIER, {});
    struct Given {
      ddprun_group* group;
      std::promise<void> destroyed{};
    } given{group};
    ddprun_then(
        work.get(),
        [](void* context) {
          auto& to_destroy = *static_cast<Given*>(context);
          ddprun_group_destroy(to_destroy.group);
          to_destroy.destroyed.set_value();
        },
        &given);
    require(given.destroyed.get_future().wait_for(10s) == std::future_status::ready, "not destroyed");
  });
  CHECK(failures(outcomes) == "");
}

}  // namespace
}  // namespace ddprun::c
