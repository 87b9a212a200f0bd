// The totals of a run's steps, and the averages that follow from them.
#pragma once

#include <cstdint>

#include "ddprun/records.hpp"

namespace ddprun::record {

struct RunTotals {
  StepRecord sums;     // samples and times; the other members are unused
  double seconds = 0;  // of training, between two barriers

  void add(const StepRecord& step);
  // The average times per step, and the throughput for `samples` of all ranks. steps > 0.
  Summary summary(int64_t steps, double samples) const;
};

}  // namespace ddprun::record
