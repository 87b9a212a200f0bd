// A step that a GPU was told to make, and may still be at.
#pragma once

#include <cstdint>

#include "record/records.hpp"
#include "train/loop/step_results.hpp"
#include "train/loop/step_timer.hpp"

namespace ddprun::train {

// The results are on the host: good once the GPU has passed the last mark. On a CPU the record is whole and the rest
// empty.
struct IssuedStep {
  record::StepRecord record;
  int64_t step_of_epoch = 0;  // from 1
  Marks marks;
  StepResults results;
};

}  // namespace ddprun::train
