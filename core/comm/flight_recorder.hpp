// The last collectives of a rank, kept in memory so that they can be written to a file when the job fails or hangs.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <vector>

#include "comm/call.hpp"

namespace ddprun::comm {

enum class CallState : uint8_t {
  started,  // this rank has called it, and it has not ended
  queued,   // on a stream: the host does not know whether it has finished
  finished,
  failed
};

inline constexpr std::size_t kCallStateCount = 4;

const char* name_of(CallState state);

struct RecordedCall {
  CallShape shape;  // its number is the same on all ranks
  CallState state = CallState::started;
  int64_t step = 0;             // of the training; 0 before the first
  double start = 0;             // seconds since 1970
  double duration = kNotEnded;  // seconds, exact to a few milliseconds, by a monotonic clock
  double end() const { return start + duration; }

  static constexpr double kNotEnded = std::numeric_limits<double>::quiet_NaN();
};

// A ring of fixed size. Any thread may call any function at any time.
class FlightRecorder {
 public:
  static constexpr std::size_t kCapacity = 512;

  void start(const CallShape& shape) noexcept;
  // Does nothing if the call is no longer in the ring.
  void end(uint64_t number, CallState state) noexcept;
  // The step that later calls belong to.
  void set_step(int64_t step) noexcept { step_.store(step, std::memory_order_relaxed); }
  int64_t step() const noexcept { return step_.load(std::memory_order_relaxed); }

  // Oldest first.
  std::vector<RecordedCall> calls() const;

 private:
  std::atomic<int64_t> step_{0};
  mutable std::mutex mutex_;
  std::array<RecordedCall, kCapacity> ring_{};  // `start` by the steady clock; number 0: empty
};

}  // namespace ddprun::comm
