// Checkpointer: saves the state of a training and restores it. And the callbacks that use it.
#pragma once

#include <cstdint>
#include <string>

#include "train/loop/callback.hpp"

namespace ddprun::train {

// Every rank has one and calls it at the same points.
class Checkpointer {
 public:
  virtual ~Checkpointer() = default;
  // Once, when the replicas are equal and before the first step. Restores the state to resume from and returns its
  // position; Position{} for a new run. Not collective, so a rank may take longer than a timeout.
  virtual Position restore() = 0;
  // Called directly after restore(). Collective: restores what all ranks must restore together.
  virtual void restore_together() = 0;
  // Saves this rank's state for the next checkpoint. All ranks have returned before save() is called.
  virtual void save_state(const Position& position) = 0;
  // Rank 0: commits the weights after a step, with the number of complete epochs.
  virtual void save(int64_t step, int64_t epochs) = 0;
  // Rank 0: keeps the weights after a step as the best, with the value of their metric.
  virtual void save_best(int64_t step, int64_t epochs, double value) = 0;
};

// Resumes the training. Commits after every `every` epochs (0: only at the end) and when training ends. It commits
// before the evaluation, so that an interrupted evaluation loses no progress. Must be first in the list of callbacks.
class CheckpointCallback final : public Callback {
 public:
  CheckpointCallback(Checkpointer& checkpointer, int64_t every) : checkpointer_(checkpointer), every_(every) {}

  void on_fit_start(LoopState& state) override;
  void on_epoch_trained(LoopState& state) override;
  // EarlyStop may end the training after on_epoch_trained(), so the last commit happens here.
  void on_fit_end(LoopState& state) override;

 private:
  void commit(LoopState& state);

  Checkpointer& checkpointer_;
  const int64_t every_;
  int64_t committed_ = -1;  // the step of the last commit
};

// Keeps the weights of the best epoch by a metric (metric.hpp). Must come before EarlyStop in the list of callbacks.
class BestWeights final : public Callback {
 public:
  BestWeights(Checkpointer& checkpointer, std::string metric)
      : checkpointer_(checkpointer), metric_(std::move(metric)) {}

  void on_epoch_end(const record::EpochRecord& record, LoopState& state) override;

 private:
  Checkpointer& checkpointer_;
  const std::string metric_;
};

}  // namespace ddprun::train
