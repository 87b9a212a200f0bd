// StepRunner: one step of training, from a batch to changed weights.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "train/loop/checkpointing.hpp"
#include "train/loop/data_loader.hpp"
#include "train/loop/policy.hpp"
#include "train/loop/step_timer.hpp"
#include "train/loop/strategy.hpp"
#include "train/optim/optimizers.hpp"
#include "train/optim/precision.hpp"

namespace ddprun::train {

// From the [train] section.
struct StepOptions {
  int64_t accumulate = 1;  // number of micro-batches per batch
  double clip_norm = 0;    // limit of the gradients' global 2-norm; 0: no limit
  Amp amp = Amp::off;
  bool channels_last = false;             // memory format of batches; the model's weights have it already
  std::optional<Schedule> schedule = {};  // none: the optimizer's own learning rate throughout
};

// The objects that a training loop uses. It owns none of them.
struct TrainerDeps {
  Model& model;
  torch::optim::Optimizer& optimizer;
  Strategy& strategy;
  const comm::Group& ranks;
  DataLoader& train;
  DataLoader* validation = nullptr;       // null: none; its samples are fetched as in kPlainEpoch
  DataLoader* test = nullptr;             // null: none
  Checkpoints* checkpoints = nullptr;     // null: none
  std::vector<Observer*> observers = {};  // in call order, as the policies
  std::vector<Policy*> policies = {};
  Plan plan = {};
  StepOptions step = {};
};

// The mean loss over a batch, and the model output that it was computed from.
struct Outcome {
  torch::Tensor output, loss;
};

// Training thread only. All constructor arguments must outlive it.
class StepRunner {
 public:
  // deferred: the loss stays on the device, in the results, instead of being read into the record.
  StepRunner(const TrainerDeps& deps, Precision& precision, StepMonitor& monitor, bool deferred)
      : deps_(deps), precision_(precision), monitor_(monitor), deferred_(deferred) {}

  // Forward, backward, gradient averaging, optimizer. On a CPU the loss and accuracy are in the record, on a GPU in the
  // results. Throws Error(failure) if the loss is not finite.
  StepResults run(const TensorBatch& batch, record::StepRecord& record);
  // Only forward and loss.
  Outcome forward(const TensorBatch& batch);
  // Waits until the GPU has copied the results, and adds them to the record. Throws as run() does.
  void read(const StepResults& results, record::StepRecord& record);

 private:
  void run_part(const TensorBatch& part, bool is_last, double step_samples, record::StepRecord& record,
                StepResults& results);
  void run_micro_batch(const TensorBatch& batch, double fraction, record::StepRecord& record, StepResults& results);
  void add_result(const MicroResult& result, record::StepRecord& record);
  void update_weights(record::StepRecord& record, StepResults& results);

  const TrainerDeps& deps_;
  Precision& precision_;
  StepMonitor& monitor_;
  const bool deferred_;
};

}  // namespace ddprun::train
