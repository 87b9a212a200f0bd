// PageFaultMeter: how much memory training requests from the kernel.
#pragma once

#include <cstdint>

namespace ddprun::train {

// Counts the page faults of training steps. One costs about a microsecond, and a step that frees and allocates its
// memory again has tens of thousands. The first steps do not count, because they allocate optimizer state, buckets and
// the DataLoader's batches. Single-threaded.
class PageFaultMeter {
 public:
  static constexpr int64_t kWarmSteps = 5;

  // Training begins, after `steps` steps of the run.
  void start(int64_t steps);
  // After each step.
  void step(int64_t steps) {
    if (steps == kWarmSteps) start(steps);
  }
  // Training is interrupted, for example by an evaluation.
  void stop(int64_t steps);

  double per_step() const;

 private:
  int64_t first_ = -1;  // steps done when counting began; -1: not counting
  int64_t faults_then_ = 0;
  int64_t faults_ = 0;
  int64_t steps_ = 0;
};

}  // namespace ddprun::train
