// The last collectives of a rank, kept in memory, and their file: collectives-rank<N>.json, written when a job fails or
// gets SIGUSR2.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <string>
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

// The file of one rank. "" and -1: not known.
struct RankCollectives {
  int64_t rank = 0, world = 1;
  std::string host{};
  int64_t pid = -1;
  std::string backend{};
  std::string reason{};               // why it was written: "SIGUSR2", ...
  double written = 0;                 // when: seconds since 1970
  std::vector<RecordedCall> calls{};  // oldest first
};

constexpr const char* kCollectivesPrefix = "collectives-rank";  // then the rank and ".json"
std::string collectives_path(const std::string& run_dir, int64_t rank);

// Writes the file, or replaces it. Throws Error(failure).
void write_collectives(const std::string& run_dir, const RankCollectives& collectives);

}  // namespace ddprun::comm
