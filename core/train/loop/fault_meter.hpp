// Counts the page faults of training steps. One costs about a microsecond, and a step that gives its memory back and
// takes it again has tens of thousands.
#pragma once

#include <cstdint>

#include "record/environment.hpp"
#include "record/records.hpp"

namespace ddprun::train {

// One thread. The first steps are left out: optimizer state, buckets and the loader's batches are new in them.
class FaultMeter {
 public:
  static constexpr int64_t kWarmSteps = 5;

  // Steps begin here; so many are done already.
  void start(int64_t steps) {
    if (steps < kWarmSteps) return;
    first_ = steps;
    faults_then_ = record::page_faults();
  }
  // After each step: starts when the last warm-up step is done.
  void warm(int64_t steps) {
    if (steps == kWarmSteps) start(steps);
  }
  // What follows is not training.
  void stop(int64_t steps) {
    if (first_ < 0) return;
    faults_ += record::page_faults() - faults_then_;
    steps_ += steps - first_;
    first_ = -1;
  }

  double per_step() const {
    return steps_ == 0 ? record::kAbsent : static_cast<double>(faults_) / static_cast<double>(steps_);
  }

 private:
  int64_t first_ = -1;  // steps done at the start of what is being counted; -1: nothing is
  int64_t faults_then_ = 0;
  int64_t faults_ = 0;
  int64_t steps_ = 0;
};

}  // namespace ddprun::train
