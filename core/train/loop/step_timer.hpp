// Times the parts of steps: by the host's clock on a CPU, by events in the stream of a GPU, which runs behind the host.
#pragma once

#include <torch/torch.h>

#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "ddprun/records.hpp"
#include "train/device/streams.hpp"

namespace ddprun::train {

// The host's clock; each lap is the time since the last one.
class Stopwatch {
 public:
  // Seconds since construction or the last lap.
  double lap() {
    const auto now = Clock::now();
    const double seconds = std::chrono::duration<double>(now - last_).count();
    last_ = now;
    return seconds;
  }
  // Seconds since construction.
  double total() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin_ = Clock::now();
  Clock::time_point last_ = begin_;
};

// Of a step on a GPU: where the stream stood at its beginning (part: null) and at the end of each part.
struct Mark {
  double record::StepRecord::*part;
  c10::Event event;
};
using Marks = std::vector<Mark>;

// One thread. Nothing but read() waits for the GPU.
class StepTimer {
 public:
  explicit StepTimer(torch::Device device) : device_(device) {}

  // A step begins.
  void begin() {
    watch_ = {};
    if (!device_.is_cpu()) mark(nullptr);
  }
  // The host's time since the last lap belongs to no part. A GPU has nothing to do then.
  void skip() {
    if (device_.is_cpu()) watch_.lap();
  }
  // The time since the last lap belongs to this part: added to the record at once on a CPU, by read() on a GPU.
  void lap(record::StepRecord& record, double record::StepRecord::*part) {
    if (device_.is_cpu()) {
      record.*part += watch_.lap();
    } else {
      mark(part);
    }
  }
  // Seconds of the host's clock since begin().
  double total() const { return watch_.total(); }

  // Off: nothing is marked on a GPU. On at first.
  void set_timing(bool on) { measures_ = on; }

  // The marks of the step that was begun last; none on a CPU.
  Marks take() { return std::exchange(marks_, {}); }
  // Steps in their order. Waits until the GPU has passed the last mark, adds the times of the parts to the record, sets
  // its total, from the end of the step before, and leaves of the host's wait for data what the GPU had to wait for it.
  // So the totals of an epoch add up to its time.
  void read(Marks marks, record::StepRecord& record);
  // The next step that is read follows no other: its total is the host's wait for data and its own time.
  void restart() { last_end_.reset(); }

 private:
  void mark(double record::StepRecord::*part);

  const torch::Device device_;
  bool measures_ = true;
  Stopwatch watch_;
  Marks marks_;
  std::optional<c10::Event> last_end_;  // of the step that was read last
  std::vector<c10::Event> spare_;
};

}  // namespace ddprun::train
