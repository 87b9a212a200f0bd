// What the steps of a run add up to on this rank.
#pragma once

#include <cstdint>

#include "record/records.hpp"

namespace ddprun::train {

struct RunTotals {
  record::StepRecord sums;  // samples and times; the other members mean nothing
  double seconds = 0;       // of training, from a barrier to a barrier

  void add(const record::StepRecord& step);
  // The times of the average step, and the throughput of `samples` of all ranks. steps > 0.
  record::Summary summary(int64_t steps, double samples) const;
};

}  // namespace ddprun::train
