// Checkpointer: where a training's state goes, and comes from when a run resumes. And the callbacks that call it.
#pragma once

#include <cstdint>
#include <string>

#include "train/loop/callback.hpp"

namespace ddprun::train {

// Every rank has one and calls it at the same places.
class Checkpointer {
 public:
  virtual ~Checkpointer() = default;
  // Once, when the replicas are equal and before the first step: restores what the run resumes from and returns where
  // it stands; Position{} for a new run. Each rank by itself: it may take its time.
  virtual Position restore() = 0;
  // Directly after it, collective: restores what all ranks must restore together.
  virtual void restore_together() = 0;
  // Saves this rank's part of the next commit. All ranks have returned before save() is called.
  virtual void save_state(const Position& position) = 0;
  // Rank 0: commits the weights after a step, with the number of complete epochs.
  virtual void save(int64_t step, int64_t epochs) = 0;
  // Rank 0: keeps the weights after a step as the best, with the value of their metric.
  virtual void save_best(int64_t step, int64_t epochs, double value) = 0;
};

// Resumes the training, and commits after every `every` epochs (0: only at the end) and when training ends, before the
// evaluation, so that an interruption of the evaluation loses nothing. First in the list of callbacks.
class CheckpointCallback final : public Callback {
 public:
  CheckpointCallback(Checkpointer& checkpointer, int64_t every) : checkpointer_(checkpointer), every_(every) {}

  void on_fit_start(LoopState& state) override;
  void on_epoch_trained(LoopState& state) override;
  // An early stop ends the training after the place for its commit.
  void on_fit_end(LoopState& state) override;

 private:
  void commit(LoopState& state);

  Checkpointer& checkpointer_;
  const int64_t every_;
  int64_t committed_ = -1;  // the step of the last commit
};

// Keeps the weights of the epoch that is best by a metric (metric.hpp). Before EarlyStop in the list of callbacks.
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
