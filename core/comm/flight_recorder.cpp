#include "comm/flight_recorder.hpp"

#include <algorithm>
#include <bit>
#include <ctime>

namespace ddprun::comm {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

using Words = std::array<uint64_t, 4>;
static_assert(sizeof(Words) == sizeof(CallShape));

constexpr int kStateBits = 2;

uint64_t now() {
  return static_cast<uint64_t>(nanoseconds(Clock::now().time_since_epoch()).count());
}

// The same clock at the kernel's last tick, a few milliseconds ago. Reading it takes a fifth of the time, which counts:
// a small collective in shared memory takes 0.2 us.
uint64_t last_tick() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

}  // namespace

const char* name_of(CallState state) {
  constexpr const char* names[] = {"started", "queued", "finished", "failed"};
  return names[static_cast<std::size_t>(state)];
}

// Each store after the first is a release, so a reader that sees a new value also sees that the number is not the old
// one. That costs nothing on x86.
void FlightRecorder::start(const CallShape& shape) noexcept {
  const auto words = std::bit_cast<Words>(shape);
  Slot& slot = slots_[shape.number % kCapacity];
  slot.number.store(0, std::memory_order_relaxed);
  for (std::size_t word = 1; word < words.size(); ++word) {
    slot.shape[word - 1].store(words[word], std::memory_order_release);
  }
  slot.step.store(static_cast<uint64_t>(step_.load(std::memory_order_relaxed)), std::memory_order_release);
  slot.start.store(now(), std::memory_order_release);
  slot.end.store(0, std::memory_order_release);
  slot.number.store(words[0], std::memory_order_release);
}

void FlightRecorder::end(uint64_t number, CallState state) noexcept {
  Slot& slot = slots_[number % kCapacity];
  if (slot.number.load(std::memory_order_relaxed) != number) return;
  const uint64_t start = slot.start.load(std::memory_order_relaxed);
  const uint64_t duration = std::max(last_tick(), start) - start;
  slot.end.store(duration << kStateBits | static_cast<uint64_t>(state), std::memory_order_release);
}

std::vector<RecordedCall> FlightRecorder::calls() const {
  // The steady clock plus this offset is the time since 1970.
  const auto offset = std::chrono::system_clock::now().time_since_epoch() - Clock::now().time_since_epoch();
  const auto in_seconds = [](nanoseconds time) { return std::chrono::duration<double>(time).count(); };
  std::vector<RecordedCall> calls;
  calls.reserve(kCapacity);
  for (const Slot& slot : slots_) {
    const uint64_t number = slot.number.load(std::memory_order_acquire);
    const auto read = [](const Word& word) { return word.load(std::memory_order_acquire); };
    const Words words{number, read(slot.shape[0]), read(slot.shape[1]), read(slot.shape[2])};
    RecordedCall call;
    call.shape = std::bit_cast<CallShape>(words);
    call.step = static_cast<int64_t>(read(slot.step));
    call.start = in_seconds(nanoseconds(read(slot.start)) + offset);
    const uint64_t end = read(slot.end);
    call.state = static_cast<CallState>(end & ((1U << kStateBits) - 1));
    if (call.state != CallState::started) call.duration = in_seconds(nanoseconds(end >> kStateBits));
    if (number != 0 && slot.number.load(std::memory_order_relaxed) == number) calls.push_back(call);
  }
  std::ranges::sort(calls, {}, [](const RecordedCall& call) { return call.shape.number; });
  return calls;
}

}  // namespace ddprun::comm
