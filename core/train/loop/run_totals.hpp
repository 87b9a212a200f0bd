// What the steps of a run add up to on this rank.
#pragma once

#include <cstdint>

#include "ddprun/records.hpp"

namespace ddprun::train {

struct RunTotals {
  record::StepRecord sums;  // samples and times; the other members mean nothing
  double seconds = 0;       // of training, from a barrier to a barrier

  void add(const record::StepRecord& step);
  // The times of the average step, and the throughput of `samples` of all ranks. steps > 0.
  record::Summary summary(int64_t steps, double samples) const;
};

// Counts the page faults of training steps. One costs about a microsecond, and a step that gives its memory back and
// takes it again has tens of thousands. The first steps do not count: optimizer state, buckets and the loader's batches
// are new in them. One thread.
class PageFaultMeter {
 public:
  static constexpr int64_t kWarmSteps = 5;

  // Training begins here, after so many steps of the run.
  void start(int64_t steps);
  // After each step.
  void step(int64_t steps) {
    if (steps == kWarmSteps) start(steps);
  }
  // What follows is not training.
  void stop(int64_t steps);

  double per_step() const;

 private:
  int64_t first_ = -1;  // steps done when counting began; -1: nothing is counted
  int64_t faults_then_ = 0;
  int64_t faults_ = 0;
  int64_t steps_ = 0;
};

}  // namespace ddprun::train
