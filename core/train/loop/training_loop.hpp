// TrainingLoop: runs steps, epochs and evaluations in order until training ends. The parts that differ between
// trainings are objects that it calls: Strategy, Precision, observers and policies.
//
// On a GPU, a step is reported after the next step has been queued, so that the GPU never waits for the host. All steps
// of an epoch are reported before the epoch ends. On a CPU, a step is reported when it is done.
#pragma once

#include <optional>

#include "ddprun/trainer.hpp"
#include "train/loop/step_runner.hpp"

namespace ddprun::train {

class TrainingLoop final : public Trainer {
 public:
  explicit TrainingLoop(TrainerDeps deps);

  record::Summary fit() override;
  Evaluation evaluate() override { return evaluate(*deps_.test, 0); }

 private:
  void start();
  bool needs_sync(int64_t step) const;
  record::EpochRecord train_epoch();
  Decision decide_after_step();
  void end_epoch(const record::EpochRecord& record);
  bool next(TensorBatch& batch);
  void train_step(const TensorBatch& batch, double waited);
  void run(const TensorBatch& batch, PendingStep& step);
  void flush();
  void flush_state();
  double checkpoint();
  void report(PendingStep& step);
  record::EpochRecord sum_epoch() const;
  void evaluate_epoch(record::EpochRecord& record);
  Evaluation evaluate(DataLoader& loader, int64_t epoch);
  record::Summary summarize();
  int64_t steps_here() const { return monitor_.step - first_step_; }

  TrainerDeps deps_;
  const torch::Device device_;   // of the model
  const bool defers_;            // a step is reported after the next one has been queued
  FusedOptimizer* const fused_;  // the optimizer if the GPU itself skips steps; otherwise null
  StepMonitor monitor_;
  Precision precision_;
  StepRunner runner_;

  LoopState state_;
  int64_t first_step_ = 0;              // steps done before this run; 0 for a new training
  std::optional<PendingStep> pending_;  // not reported yet
  record::EpochRecord last_epoch_;
  record::RunTotals totals_;
};

}  // namespace ddprun::train
