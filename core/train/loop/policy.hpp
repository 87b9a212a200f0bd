// Policy: decides about a training: whether it stops, commits a checkpoint, or leaves out a step.
#pragma once

#include <cstdint>
#include <string>

#include "ddprun/records.hpp"
#include "train/loop/loop_state.hpp"

namespace ddprun::train {

// What a policy decides.
struct Decision {
  bool checkpoint = false;  // commit a checkpoint here
  std::string stop{};       // the reason why training ends here: kInterrupted or kEarlyStop; empty: it goes on
};

// The training thread calls every function, in the order of TrainerDeps::policies, and after the observers. All ranks
// must get the same answer for the same step. The loop calls every function on all ranks in the same order, so a policy
// may communicate. An exception ends the training.
class Policy {
 public:
  virtual ~Policy() = default;

  // Once, when all replicas are equal and before the first step. `state.at` is the position that the run begins at.
  virtual void start(LoopState& state) { (void)state; }
  // As Observer::needs_sync().
  virtual bool needs_sync(int64_t /*step*/) { return false; }
  // True if the optimizer must leave out this step. The gradients are averaged and unscaled, and not yet clipped.
  virtual bool skips_step(int64_t /*step*/) { return false; }
  // When a step is reported: on a GPU, after the next one has been queued.
  virtual void on_step_end(const record::StepRecord& record, LoopState& state) { (void)record, (void)state; }
  // After each step. A checkpoint is left out if training ends here.
  virtual Decision after_step(int64_t /*step*/) { return {}; }
  // After the evaluation of an epoch. Not called for an interrupted epoch.
  virtual Decision after_epoch(const record::EpochRecord&, LoopState&) { return {}; }
};

}  // namespace ddprun::train
