#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include "train/device/worker_thread.hpp"

namespace ddprun::train {
namespace {

TEST_CASE("jobs run in the order in which they were submitted") {
  WorkerThread thread;
  std::vector<int> order;
  for (int i = 0; i < 100; ++i) thread.submit([&order, i] { order.push_back(i); });
  thread.drain();
  REQUIRE(order.size() == 100);
  for (int i = 0; i < 100; ++i) CHECK(order[static_cast<std::size_t>(i)] == i);
}

TEST_CASE("waiting for a job does not wait for those after it") {
  WorkerThread thread;
  std::atomic<bool> go{false};
  thread.submit([] {});
  thread.submit([&] { go.wait(false); });
  thread.wait(1);
  CHECK_FALSE(go);
  go = true;
  go.notify_all();
  thread.wait(2);
}

TEST_CASE("a job's exception reaches the waiting thread, and later jobs do not run") {
  WorkerThread thread;
  std::atomic<bool> ran{false};
  std::atomic<bool> submitted{false};
  thread.submit([&] {
    submitted.wait(false);
    throw std::runtime_error("broken");
  });
  thread.submit([&] { ran = true; });
  submitted = true;
  submitted.notify_all();
  CHECK_THROWS_WITH(thread.wait(1), "broken");
  CHECK_THROWS_WITH(thread.wait(2), "broken");
  CHECK_THROWS_WITH(thread.wait(thread.submit([&] { ran = true; })), "broken");
  CHECK_THROWS_WITH(thread.drain(), "broken");
  CHECK_FALSE(ran);
}

TEST_CASE("a job submitted after a failure that was not thrown yet does not run") {
  WorkerThread thread;
  std::atomic<bool> ran{false};
  thread.submit([] { throw std::runtime_error("broken"); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // by now the job has most probably failed
  thread.submit([&] { ran = true; });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  CHECK_FALSE(ran);
  CHECK_THROWS_WITH(thread.wait(2), "broken");
}

TEST_CASE("a wait for the failed job throws, a wait for an earlier one does not") {
  WorkerThread thread;
  thread.submit([] {});
  thread.submit([] { throw std::runtime_error("broken"); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // both have run, most probably
  CHECK_NOTHROW(thread.wait(1));
  CHECK_THROWS_WITH(thread.wait(2), "broken");
}

TEST_CASE("the destructor discards remaining jobs") {
  std::atomic<int> ran{0};
  {
    WorkerThread thread;
    for (int i = 0; i < 1000; ++i) thread.submit([&] { ++ran; });
  }
  CHECK(ran <= 1000);
}

}  // namespace
}  // namespace ddprun::train
