// What a trainer tells the outside, and the one thing that it asks.
#pragma once

#include <cstdint>
#include <vector>

#include "launch/progress.hpp"
#include "record/records.hpp"

namespace ddprun::train {

// Called from the trainer's thread. Slow observers slow training down.
class Observer {
 public:
  virtual ~Observer() = default;
  // Before anything happens in a phase. bucket: of an allreduce, else -1.
  virtual void phase(launch::Phase phase, int64_t step, int bucket) = 0;
  // After each step, in their order; step_of_epoch counts from 1. On a GPU the phases of the next step come before it,
  // unless at_once() asks for this step.
  virtual void step(const record::StepRecord& record, int64_t step_of_epoch, int64_t steps_per_epoch) = 0;
  // Whether a step is to be told before the next one begins, and the one before it before it begins. A GPU then has
  // nothing to do meanwhile.
  virtual bool at_once(int64_t step) {
    (void)step;
    return false;
  }
  // After each epoch, with its evaluation.
  virtual void epoch(const record::EpochRecord& record) = 0;
  // The samples that each rank has of a full step from here on.
  virtual void shares(const std::vector<int64_t>& samples) { (void)samples; }
  // True when training is to end after this global step. All ranks must get the same answer for the same step.
  virtual bool stop_after(int64_t step) = 0;
};

}  // namespace ddprun::train
