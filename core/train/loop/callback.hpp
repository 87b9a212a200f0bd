// Callback: what happens at the marked points of a training besides training itself, such as checkpoints and progress.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ddprun/phase.hpp"
#include "ddprun/records.hpp"
#include "train/loop/position.hpp"

namespace ddprun::train {

class DataLoader;
class RankGroup;
class StepMonitor;

// How far a training goes.
struct Plan {
  std::optional<int64_t> epochs;  // exactly one of the two
  std::optional<int64_t> steps;
  bool evaluate = true;  // after each epoch
};

inline const std::string kInterrupted = "interrupted", kEarlyStop = "early_stop";

// Where a training stands. The training loop keeps it, callbacks read it and may end the training by it.
struct LoopState {
  const Plan& plan;
  RankGroup& ranks;
  DataLoader& train;
  StepMonitor& monitor;
  Position at;          // `at.step` is current whenever a callback is called
  bool stop = false;    // no further step: the plan's steps are done, or `stopped` says why
  std::string stopped;  // kInterrupted, kEarlyStop; empty: the plan

  // Whether training ends after so many epochs.
  bool ends_after(int64_t epochs_done) const { return stop || (plan.epochs && epochs_done >= *plan.epochs); }
  // Epochs whose steps are all done.
  int64_t complete_epochs() const;
};

// Every function is called on the training thread, in the order of the list of callbacks; slow ones slow training down.
// Those that communicate must be called on all ranks alike: the loop guarantees it for all but on_phase. What a
// function throws ends the training.
class Callback {
 public:
  virtual ~Callback() = default;

  // Once, when the replicas are equal and before the first step. May move state.at to where training resumes.
  virtual void on_fit_start(LoopState& state) { (void)state; }
  // When a phase begins. bucket: of an allreduce, else -1.
  virtual void on_phase(Phase phase, int64_t step, int bucket) { (void)phase, (void)step, (void)bucket; }
  // True where on_step_end for this step must come before the next step begins, and that of the step before it before
  // this step begins. A GPU is idle meanwhile.
  virtual bool needs_sync(int64_t step) {
    (void)step;
    return false;
  }
  // The gradients are those that the optimizer is about to use; then the weights are those after its step.
  virtual void before_optimizer_step(int64_t step) { (void)step; }
  virtual void after_optimizer_step(int64_t step) { (void)step; }
  // After each step, in order. On a GPU one step late, unless needs_sync() asks otherwise. step_of_epoch is from 1.
  virtual void on_step_end(const record::StepRecord& record, int64_t step_of_epoch, LoopState& state) {
    (void)record, (void)step_of_epoch, (void)state;
  }
  // After the steps of an epoch, or of the part of it before a stop. Before the evaluation.
  virtual void on_epoch_trained(LoopState& state) { (void)state; }
  // After the evaluation of an epoch; not after an interrupted one.
  virtual void on_epoch_end(const record::EpochRecord& record, LoopState& state) { (void)record, (void)state; }
  // True where training must end after this step. All ranks must get the same answer for the same step.
  virtual bool should_stop(int64_t step) {
    (void)step;
    return false;
  }
  // Once, after the last epoch.
  virtual void on_fit_end(LoopState& state) { (void)state; }
};

// Calls each callback of a list in turn. The callbacks belong to the caller and outlive it.
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
  void on_fit_end(LoopState& state) override {
    for (Callback* callback : callbacks_) callback->on_fit_end(state);
  }

 private:
  const std::vector<Callback*> callbacks_;
};

}  // namespace ddprun::train
