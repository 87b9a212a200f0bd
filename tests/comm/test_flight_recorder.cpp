#include "comm/flight_recorder.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <memory>
#include <thread>

#include "joined.hpp"
#include "support/error_of.hpp"

namespace ddprun::comm {
namespace {

using namespace std::chrono_literals;
using testing::As;
using testing::failures;
using testing::run_ranks;

constexpr auto kDeadline = 60s;

// Its arguments follow from its number, so that a torn record is seen.
CallShape some_call(uint64_t number) {
  return {.number = number,
          .count = number * 3,
          .bucket = static_cast<int64_t>(number),
          .root = static_cast<int>(number % 5),
          .kind = number % 2 == 0 ? Kind::allreduce : Kind::broadcast,
          .dtype = DType::float64};
}

void check_whole(const RecordedCall& call) {
  const uint64_t number = call.shape.number;
  const bool whole = call.shape == some_call(number) && call.step == static_cast<int64_t>(number) / 10;
  CHECK(whole);
}

void record(FlightRecorder& recorder, uint64_t number, CallState end) {
  recorder.set_step(static_cast<int64_t>(number) / 10);
  recorder.start(some_call(number));
  recorder.end(number, end);
}

void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error("wrong: " + what);
}

}  // namespace

TEST_CASE("a call is recorded with its arguments, step, state and duration") {
  FlightRecorder recorder;
  CHECK(recorder.calls().empty());
  recorder.set_step(7);
  const auto now = [] { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()); };
  const double before = now().count();
  recorder.start(some_call(1));
  recorder.start(some_call(2));
  std::this_thread::sleep_for(30ms);
  recorder.end(1, CallState::finished);
  recorder.set_step(8);
  recorder.start(some_call(3));
  recorder.end(3, CallState::failed);
  const auto calls = recorder.calls();
  REQUIRE(calls.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) CHECK(calls[i].shape == some_call(i + 1));
  CHECK(calls[0].state == CallState::finished);
  CHECK(calls[0].duration >= 0.015);
  CHECK(calls[0].start >= before - 0.001);  // seconds; two clocks are read
  CHECK(calls[0].end() <= now().count() + 0.001);
  CHECK(calls[0].step == 7);
  CHECK(calls[1].state == CallState::started);
  CHECK(std::isnan(calls[1].duration));
  CHECK(calls[2].state == CallState::failed);
  CHECK(calls[2].step == 8);
}

TEST_CASE("the ring keeps the last calls, in order, and ignores the end of an older one") {
  constexpr uint64_t kCalls = FlightRecorder::kCapacity * 2 + 100;
  const auto recorder = std::make_unique<FlightRecorder>();
  for (uint64_t number = 1; number <= kCalls; ++number) record(*recorder, number, CallState::queued);
  recorder->end(kCalls - FlightRecorder::kCapacity, CallState::failed);
  const auto calls = recorder->calls();
  REQUIRE(calls.size() == FlightRecorder::kCapacity);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    REQUIRE(calls[i].shape.number == kCalls - FlightRecorder::kCapacity + 1 + i);
    CHECK(calls[i].state == CallState::queued);
    check_whole(calls[i]);
  }
}

TEST_CASE("a thread that reads while another records sees whole calls only") {
  const auto recorder = std::make_unique<FlightRecorder>();
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (uint64_t number = 1; !stop; ++number) record(*recorder, number, CallState::finished);
  });
  for (int turn = 0; turn < 200; ++turn) {
    uint64_t last = 0;
    for (const RecordedCall& call : recorder->calls()) {
      check_whole(call);
      CHECK(call.shape.number > last);
      last = call.shape.number;
    }
  }
  stop = true;
  writer.join();
}

namespace {

// An exchange over the backend itself, as between hosts.
class OverBackend final : public FingerprintExchange {
 public:
  explicit OverBackend(CommBackend& backend) : backend_(backend), all_(static_cast<std::size_t>(backend.size())) {}
  std::span<const CallShape> exchange(const CallShape& mine, std::chrono::milliseconds deadline) override {
    mine_ = mine;
    backend_.allgather({.send = &mine_, .recv = all_.data(), .count = sizeof mine_, .dtype = DType::uint8})
        .wait(deadline);
    return all_;
  }
  void abort() noexcept override {}

 private:
  CommBackend& backend_;
  CallShape mine_;
  std::vector<CallShape> all_;
};

void record_calls(testing::Rank& rank) {
  const auto backend = join(fake("good"), options_of(rank));
  backend->compare_calls(std::make_unique<OverBackend>(*backend));
  backend->barrier().wait(kDeadline);
  std::vector<float> values(100);
  const Collective sum{.send = values.data(), .recv = values.data(), .count = values.size()};
  backend->allreduce(sum).wait(kDeadline);
  // Rank 1 calls something else.
  std::string error;
  try {
    (rank.rank() == 1 ? backend->barrier() : backend->allreduce(sum)).wait(kDeadline);
  } catch (const CommError& failed) {
    error = failed.what();
  }
  require(!error.empty(), "no mismatch");
  const auto recorder = backend->recorder();
  const auto calls = recorder->calls();
  require(calls.size() == 3, "calls: " + std::to_string(calls.size()));
  require(describe(calls[0].shape) == "barrier 1" && calls[0].state == CallState::finished, "barrier");
  require(describe(calls[1].shape) == "allreduce 2 (float32 x 100, sum)", describe(calls[1].shape));
  require(calls[1].state == CallState::finished, "allreduce is finished");
  require(calls[2].state == CallState::failed, "the mismatch failed");
  require(calls[2].shape.kind == (rank.rank() == 1 ? Kind::barrier : Kind::allreduce), "kind");
}

}  // namespace

TEST_CASE("a backend records its calls, the failed ones too, and not those of the comparison") {
  for (const int size : {2, 3}) CHECK(failures(run_ranks(size, As::processes, kDeadline, record_calls)) == "");
}

}  // namespace ddprun::comm
