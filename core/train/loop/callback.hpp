// Callback: what happens at fixed points of a training besides training itself, such as checkpoints and progress.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "comm/group.hpp"
#include "ddprun/phase.hpp"
#include "ddprun/records.hpp"
#include "train/loop/position.hpp"

namespace ddprun::train {

class DataLoader;
class StepMonitor;

// How long a training runs.
struct Plan {
  std::optional<int64_t> epochs;  // exactly one of epochs and steps is set
  std::optional<int64_t> steps;
  bool evaluate = true;  // after each epoch
};

inline const std::string kInterrupted = "interrupted", kEarlyStop = "early_stop";

// The progress of a training. The training loop updates it; callbacks read it and may stop the training through it.
struct LoopState {
  const Plan& plan;
  comm::Group& ranks;
  DataLoader& train;
  StepMonitor& monitor;
  Position at;          // whenever a callback is called, `at.step` is the current step
  bool stop = false;    // no further step: either the plan is complete, or `stopped` gives the reason
  std::string stopped;  // kInterrupted or kEarlyStop; empty: the plan is complete

  // Whether training ends after this number of epochs.
  bool ends_after(int64_t epochs_done) const { return stop || (plan.epochs && epochs_done >= *plan.epochs); }
  // Number of epochs whose steps are all done.
  int64_t complete_epochs() const;
};

// The training thread calls every function, in the order of the callback list. A slow callback slows training down. A
// callback that communicates must be called on all ranks in the same order; the loop guarantees this for every function
// but on_phase. An exception ends the training.
class Callback {
 public:
  virtual ~Callback() = default;

  // Once, when all replicas are equal and before the first step. May set state.at to the position to resume from.
  virtual void on_fit_start(LoopState& state) { (void)state; }
  // A phase begins. bucket: of an allreduce, otherwise -1.
  virtual void on_phase(Phase phase, int64_t step, int bucket) { (void)phase, (void)step, (void)bucket; }
  // True if this step must be reported (on_step_end) before the next step begins. The step before it is then also
  // reported before this step begins. The GPU is idle during that time.
  virtual bool needs_sync(int64_t /*step*/) { return false; }
  // True if the optimizer must leave out this step. The gradients are averaged and unscaled, and not yet clipped. All
  // ranks must get the same answer.
  virtual bool should_skip_step(int64_t /*step*/) { return false; }
  // First the gradients that the optimizer is about to use, then the weights after its step.
  virtual void before_optimizer_step(int64_t step) { (void)step; }
  virtual void after_optimizer_step(int64_t step) { (void)step; }
  // After each step, in order. On a GPU a step is reported after the next one has been queued, unless needs_sync()
  // returned true. step_of_epoch counts from 1.
  virtual void on_step_end(const record::StepRecord&, int64_t /*step_of_epoch*/, LoopState&) {}
  // After the steps of an epoch, or of the part of an epoch before a stop; before the evaluation.
  virtual void on_epoch_trained(LoopState& state) { (void)state; }
  // After the evaluation of an epoch. Not called for an interrupted epoch.
  virtual void on_epoch_end(const record::EpochRecord& record, LoopState& state) { (void)record, (void)state; }
  // True if training must end after this step. All ranks must get the same answer for the same step.
  virtual bool should_stop(int64_t /*step*/) { return false; }
  // True if a checkpoint must be written after this step. Asked after should_stop(), unless training stops. All ranks
  // must get the same answer for the same step.
  virtual bool needs_checkpoint(int64_t /*step*/) { return false; }
  // After a step for which needs_checkpoint() returned true. All steps have been reported, and `state.at` is complete.
  virtual void on_checkpoint(LoopState& state) { (void)state; }
  // Once, after the last epoch.
  virtual void on_fit_end(LoopState& state) { (void)state; }
};

// Calls the callbacks of a list in order. A function that returns bool stops at the first callback that returns true.
// The caller owns the callbacks, which must outlive the list.
class CallbackList final : public Callback {
 public:
  explicit CallbackList(std::vector<Callback*> callbacks) : callbacks_(std::move(callbacks)) {}

  void on_fit_start(LoopState& state) override {
    for (Callback* callback : callbacks_) callback->on_fit_start(state);
  }
  void on_phase(Phase phase, int64_t step, int bucket) override {
    for (Callback* callback : callbacks_) callback->on_phase(phase, step, bucket);
  }
  bool needs_sync(int64_t step) override {
    return std::any_of(callbacks_.begin(), callbacks_.end(), [&](Callback* each) { return each->needs_sync(step); });
  }
  bool should_skip_step(int64_t step) override {
    return std::any_of(callbacks_.begin(), callbacks_.end(),
                       [&](Callback* each) { return each->should_skip_step(step); });
  }
  void before_optimizer_step(int64_t step) override {
    for (Callback* callback : callbacks_) callback->before_optimizer_step(step);
  }
  void after_optimizer_step(int64_t step) override {
    for (Callback* callback : callbacks_) callback->after_optimizer_step(step);
  }
  void on_step_end(const record::StepRecord& record, int64_t step_of_epoch, LoopState& state) override {
    for (Callback* callback : callbacks_) callback->on_step_end(record, step_of_epoch, state);
  }
  void on_epoch_trained(LoopState& state) override {
    for (Callback* callback : callbacks_) callback->on_epoch_trained(state);
  }
  void on_epoch_end(const record::EpochRecord& record, LoopState& state) override {
    for (Callback* callback : callbacks_) callback->on_epoch_end(record, state);
  }
  bool should_stop(int64_t step) override {
    return std::any_of(callbacks_.begin(), callbacks_.end(), [&](Callback* each) { return each->should_stop(step); });
  }
  bool needs_checkpoint(int64_t step) override {
    return std::any_of(callbacks_.begin(), callbacks_.end(),
                       [&](Callback* each) { return each->needs_checkpoint(step); });
  }
  void on_checkpoint(LoopState& state) override {
    for (Callback* callback : callbacks_) callback->on_checkpoint(state);
  }
  void on_fit_end(LoopState& state) override {
    for (Callback* callback : callbacks_) callback->on_fit_end(state);
  }

 private:
  const std::vector<Callback*> callbacks_;
};

}  // namespace ddprun::train
