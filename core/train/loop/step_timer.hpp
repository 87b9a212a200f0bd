// Times the parts of steps: by the host's clock on a CPU, by stream events on a GPU, which runs asynchronously. And the
// results of a step that a GPU is still executing.
#pragma once

#include <torch/torch.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "ddprun/records.hpp"
#include "train/device/streams.hpp"

namespace ddprun::train {

// The host's clock. A lap is the time since the last lap.
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

// Of a step on a GPU: an event at its beginning (part: null) and at the end of each part.
struct Mark {
  double record::StepRecord::*part;
  c10::Event event;
};
using Marks = std::vector<Mark>;

// Single-threaded. Only read() waits for the GPU.
class StepTimer {
 public:
  explicit StepTimer(torch::Device device) : device_(device) {}

  // A step begins.
  void begin() {
    watch_ = {};
    if (!device_.is_cpu()) mark(nullptr);
  }
  // Excludes the host's time since the last lap from all parts. The GPU must be idle.
  void skip() {
    if (device_.is_cpu()) watch_.lap();
  }
  // Adds the time since the last lap to this part of the record: immediately on a CPU, in read() on a GPU.
  void lap(record::StepRecord& record, double record::StepRecord::*part) {
    if (device_.is_cpu()) {
      record.*part += watch_.lap();
    } else {
      mark(part);
    }
  }
  // Seconds of the host's clock since begin().
  double total() const { return watch_.total(); }

  // The marks of the current step; none on a CPU.
  Marks take() { return std::exchange(marks_, {}); }
  // Call it for the steps in order. Waits until the GPU has passed the last mark and adds the times of the parts to the
  // record. Sets the total to the time since the end of the step before, so that the totals of an epoch add up to its
  // time. Reduces the data time to the time that the GPU was idle waiting for data.
  void read(Marks marks, record::StepRecord& record);
  // The next step that is read does not follow another: its total is the host's wait for data plus its own time.
  void restart() { last_end_.reset(); }

 private:
  void mark(double record::StepRecord::*part);

  const torch::Device device_;
  Stopwatch watch_;
  Marks marks_;
  std::optional<c10::Event> last_end_;  // of the last step that was read
  std::vector<c10::Event> spare_;
};

// Of a micro-batch.
struct MicroResult {
  torch::Tensor loss;     // scalar: mean over its samples
  torch::Tensor correct;  // scalar; undefined if accuracy is undefined
  double fraction = 1;    // of the rank's samples in the step
};

struct StepResults {
  std::vector<MicroResult> parts;
  torch::Tensor scale, overflow;  // scalars; fp16, if the GPU itself skips steps with overflow
};

// An asynchronous copy, in page-locked memory, of what a GPU's current stream is computing. It is valid when the stream
// has passed this copy. Returns an undefined tensor for an undefined tensor.
inline torch::Tensor copy_to_host(const torch::Tensor& tensor) {
  constexpr bool non_blocking = true;  // Tensor::to allocates page-locked memory for such copies
  return tensor.defined() ? tensor.to(torch::kCPU, non_blocking) : tensor;
}

inline StepResults copy_to_host(const StepResults& results) {
  StepResults copies;
  for (const MicroResult& part : results.parts) {
    copies.parts.push_back({copy_to_host(part.loss), copy_to_host(part.correct), part.fraction});
  }
  copies.scale = copy_to_host(results.scale);
  copies.overflow = copy_to_host(results.overflow);
  return copies;
}

// A step that is done or, on a GPU, queued. On a GPU the results are valid when the GPU has passed the last mark. On a
// CPU the record is complete and the other members are empty.
struct PendingStep {
  record::StepRecord record;
  int64_t step_of_epoch = 0;  // from 1
  Marks marks;
  StepResults results;
};

}  // namespace ddprun::train
