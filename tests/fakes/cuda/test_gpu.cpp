// The fake GPU detects unordered accesses, and accepts ordered ones.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "gpu.hpp"

namespace ddprun::fake_gpu {
namespace {

constexpr Stream kMain = -1;  // the default stream of cuda:0
constexpr Stream kSide = 1001;

char memory[64];

void use(Stream stream, bool writes, std::size_t from = 0, std::size_t bytes = sizeof memory) {
  begin(stream);
  access(stream, memory + from, bytes, writes, writes ? "fill" : "read");
}

// `waiting` comes after all that `first` has begun.
void order(Stream waiting, Stream first) {
  const auto event = make_event();
  record(*event, first);
  block(waiting, *event);
}

// Fresh memory without accesses.
struct Fresh {
  Fresh() { allocated(memory, sizeof memory, kMain); }
};

TEST_CASE_FIXTURE(Fresh, "two streams that no event orders race if one of them writes") {
  use(kMain, true);
  CHECK_THROWS_WITH_AS(use(kSide, false),
                       "race: read (reads on cuda:0 stream 1001) is not ordered after fill (writes on cuda:0 stream 0)",
                       Race);
  order(kSide, kMain);
  use(kSide, false);
  use(kMain, false);
  CHECK_THROWS_AS(use(kMain, true), Race);
  order(kMain, kSide);
  use(kMain, true);
}

TEST_CASE_FIXTURE(Fresh, "an event orders work before its record, and nothing later") {
  use(kMain, true);
  const auto early = make_event();
  record(*early, kMain);
  use(kMain, true);
  block(kSide, *early);
  CHECK_THROWS_AS(use(kSide, false), Race);
}

TEST_CASE_FIXTURE(Fresh, "accesses to different bytes of the same memory do not race") {
  use(kMain, true, 0, 32);
  use(kSide, true, 32, 32);
  CHECK_THROWS_AS(use(kSide, true, 31, 32), Race);
}

TEST_CASE_FIXTURE(Fresh, "every stream may use what the host has waited for") {
  use(kMain, true);
  synchronize(kMain);
  use(kSide, true);
}

TEST_CASE_FIXTURE(Fresh, "memory freed while another stream may use it is a race, unless record_stream was called") {
  order(kSide, kMain);
  use(kSide, false);
  SUBCASE("with record_stream") {
    used_on(memory, kSide);
    freed(memory, [] {});
    begin(kMain);
  }
  SUBCASE("without record_stream") {
    freed(memory, [] {});
    CHECK_THROWS_AS(begin(kMain), Race);
    begin(kMain);
  }
  SUBCASE("known to be done") {
    order(kMain, kSide);
    freed(memory, [] {});
    begin(kMain);
  }
}

TEST_CASE("work of another thread blocks only the streams that wait for it") {
  const auto work = queue_work(kSide);
  const auto event = make_event();
  record(*event, kSide);
  CHECK_FALSE(is_done(*event));
  CHECK(is_done(kMain));
  block(kMain, *event);
  CHECK_FALSE(is_done(kMain));
  bool finished = false;
  std::thread worker([&] {
    wait_for_turn(work);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    finished = true;
    finish(work);
  });
  begin(kMain);
  CHECK(finished);
  worker.join();
  CHECK(is_done(*event));
  const auto after = make_event();
  record(*after, kMain);
  CHECK(elapsed(*event, *after) >= 0);
}

TEST_CASE("an action runs when the host has waited for earlier work") {
  bool ran = false;
  begin(kSide);
  when_known(kSide, [&] { ran = true; });
  begin(kSide);
  CHECK_FALSE(ran);
  synchronize(kMain);
  CHECK_FALSE(ran);
  synchronize(kSide);
  CHECK(ran);
}

TEST_CASE("after a wait the action is done, even if another thread had started it") {
  std::atomic<bool> begun = false, done = false;
  begin(kSide);
  when_known(kSide, [&] {
    begun = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    done = true;
  });
  std::thread other([] { synchronize(kSide); });
  while (!begun) std::this_thread::yield();
  synchronize(kSide);
  CHECK(done);
  other.join();
}

TEST_CASE("the record is text, and can be restarted") {
  ddprun_fake_gpu_forget();
  note("one");
  note("two");
  CHECK(ddprun_fake_gpu_record() == std::string("one\ntwo\n"));
  ddprun_fake_gpu_forget();
  CHECK(ddprun_fake_gpu_record() == std::string());
}

}  // namespace
}  // namespace ddprun::fake_gpu
