// Measures how fast a rank computes, for a load balance. Torch-free.
#pragma once

#include <cstdint>

#include "record/records.hpp"

namespace ddprun::train {

// One thread. Of the steps to be measured the first is left out where there are more: memory is new in it.
class SpeedMeter {
 public:
  explicit SpeedMeter(int64_t steps) : steps_(steps) {}

  void add(const record::StepRecord& step) {
    ++seen_;
    if (seen_ == 1 && steps_ > 1) return;
    seconds_ += step.forward + step.backward;
    samples_ += step.samples;
  }
  // Just now all of them have been seen.
  bool due() const { return steps_ > 0 && seen_ == steps_; }
  // Samples per second of forward and backward; above 0.
  double speed() const {
    constexpr double kLeastSeconds = 1e-9;
    return static_cast<double>(samples_ > 0 ? samples_ : 1) / (seconds_ > kLeastSeconds ? seconds_ : kLeastSeconds);
  }

 private:
  int64_t steps_;
  int64_t seen_ = 0;
  double seconds_ = 0;
  int64_t samples_ = 0;
};

}  // namespace ddprun::train
