// Observer: watches a training and changes nothing of it, such as progress, records and traces.
#pragma once

#include <cstdint>

#include "ddprun/phase.hpp"
#include "ddprun/records.hpp"
#include "train/loop/loop_state.hpp"

namespace ddprun::train {

// The training thread calls every function, in the order of TrainerDeps::observers. A slow observer slows training
// down. An exception ends the training.
class Observer {
 public:
  virtual ~Observer() = default;

  // A phase begins. bucket: of an allreduce, otherwise -1.
  virtual void on_phase(Phase phase, int64_t step, int bucket) { (void)phase, (void)step, (void)bucket; }
  // True if this step must be reported (on_step_end) before the next step begins. The step before it is then also
  // reported before this step begins. The GPU is idle during that time.
  virtual bool needs_sync(int64_t /*step*/) { return false; }
  // First the gradients that the optimizer is about to use, then the weights after its step. Not called if the
  // optimizer leaves out the step.
  virtual void before_optimizer_step(int64_t step) { (void)step; }
  virtual void after_optimizer_step(int64_t step) { (void)step; }
  // After each step, in order. On a GPU a step is reported after the next one has been queued, unless needs_sync()
  // returned true. step_of_epoch counts from 1.
  virtual void on_step_end(const record::StepRecord&, int64_t /*step_of_epoch*/, const LoopState&) {}
  // After the evaluation of an epoch. Not called for an interrupted epoch.
  virtual void on_epoch_end(const record::EpochRecord&, const LoopState&) {}
  // Once, after the last epoch.
  virtual void on_fit_end() {}
};

}  // namespace ddprun::train
