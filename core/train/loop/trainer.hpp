// train: Trainer, its strategies, the Reducer, optimizers and checkpoints of models. The room where tensors live.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "ddprun/plugin/model_plugin.hpp"
#include "record/records.hpp"
#include "train/loop/checkpointer.hpp"
#include "train/loop/early_stop.hpp"
#include "train/loop/data_loader.hpp"
#include "train/loop/observer.hpp"
#include "train/loop/step_options.hpp"

namespace ddprun::comm {
class CommBackend;
}

namespace ddprun::train {

class DeviceGraph;
class ParityLog;
class Reducer;

// What a pass over the test set gave, over all ranks.
struct Evaluation {
  double loss = 0;                                             // mean over the samples
  double accuracy = std::numeric_limits<double>::quiet_NaN();  // 0..1; NaN where it has no meaning
  int64_t samples = 0;
};

// Trains a model. One thread. All ranks construct the same trainer and call the same functions.
class Trainer {
 public:
  virtual ~Trainer() = default;
  // Goes on from where the checkpointer says to the configured end, or to the step after which the observer wishes to
  // stop: that step is committed at once, and its epoch, being unfinished, is neither evaluated nor told. Throws
  // Error(failure) when the loss is no longer finite (the observer knows the step and the phase); what Reducer,
  // CommBackend and data sets throw passes through.
  virtual record::Summary fit() = 0;
  // One pass over the test set, every sample once, in evaluation mode.
  virtual Evaluation evaluate() = 0;
};

// When a fit ends and what it does between epochs.
struct Plan {
  std::optional<int64_t> epochs;  // exactly one of the two
  std::optional<int64_t> steps;
  bool evaluate = true;
  int64_t checkpoint_every = 1;  // epochs; 0: only at the end
  std::string best = {};         // the measure whose best weights are kept; "": none
  int64_t balance_steps = 0;     // after which the ranks' shares are made those of their speeds; 0: never
  EarlyStop early_stop = {};
};

// What a trainer works with; it owns none of it.
struct Parts {
  Model& model;
  torch::optim::Optimizer& optimizer;
  DataLoader& train;
  DataLoader* test;  // may be null: then Plan::evaluate is false
  Observer& observer;
  Checkpointer* checkpointer;  // null, on all ranks: nothing is kept
  Plan plan;
  StepOptions step = {};
  ParityLog* parity = nullptr;  // null: none
  // Empty: full steps are recorded and replayed by it, on a GPU, with an optimizer of fused.hpp. Null: none. Under
  // strategies single and ddp, the latter over a backend that is ordered on streams; on a thread that has left the
  // default stream before the model was moved to the GPU.
  DeviceGraph* graph = nullptr;
};

// One device, no reducer.
std::unique_ptr<Trainer> single_trainer(Parts parts);

// DataParallel (Paszke et al. 2019): one process, a replica of the model per device, and the batch cut among them as
// torch.chunk cuts it. parts.model is the main device's replica and has the first part; outputs are gathered there for
// the loss, gradients summed there in the order of the devices. `others` are the models of the other devices, in their
// order, each made as parts.model was; on a CPU devices are groups of compute threads of the number that
// torch::set_num_threads was last told, else each is the GPU that its model is on. Each must be used by nobody else and
// outlive the trainer. A step throws what the first device that failed threw, after all have ended, and Error(usage)
// for an output without the batch as first dimension. What models draw at random comes from one generator on a
// CPU, in whatever order the devices' threads get to it; each GPU has its own.
std::unique_ptr<Trainer> dp_trainer(Parts parts, const std::vector<Model*>& others, int main_device);

struct DdpOptions {
  bool sync_buffers =
      true;  // BatchNorm's buffers from rank 0 before each step and evaluation, as DistributedDataParallel does
  int64_t hash_every = 0;  // steps between comparisons of all parameters over the ranks; 0: never
  std::chrono::milliseconds timeout{30000};
};

// DistributedDataParallel (Li et al. 2020): replicas in step, gradients averaged by the reducer, which must be one over
// the trainable parameters of parts.model.
std::unique_ptr<Trainer> ddp_trainer(Parts parts, CommBackend& backend, Reducer& reducer, DdpOptions options);

}  // namespace ddprun::train
