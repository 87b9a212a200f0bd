// Strategy: how several devices or ranks train one model. Three of them: single, dp and ddp.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <vector>

#include "ddprun/plugin/model_plugin.hpp"
#include "ddprun/records.hpp"
#include "ddprun/reducer.hpp"
#include "train/loop/run_totals.hpp"
#include "train/loop/step_monitor.hpp"

namespace ddprun::train {

class BucketedReducer;
class RankGroup;

// The defaults are those of a single device. Training thread only. Throws what the model, the reducer and the backend
// throw.
class Strategy {
 public:
  explicit Strategy(Model& model) : model_(model) {}
  virtual ~Strategy() = default;

  // Where phases and times are reported. The loop calls it once, before all else.
  void attach(StepMonitor& monitor) { monitor_ = &monitor; }

  // Once, before the first step: afterwards all replicas are equal.
  virtual void prepare() {}
  // Before each step of training and before an evaluation: makes the model's buffers equal on all replicas.
  virtual void synchronize_buffers() {}
  // Before each forward and backward of a step; there are several under gradient accumulation. Gradients are complete
  // only after the last; before it they are summed on this rank.
  virtual void begin_micro_batch(bool last) { (void)last; }
  // The model's output [samples, ...] for an input batch, in training and in evaluation.
  virtual torch::Tensor forward(const torch::Tensor& input) { return model_.forward(input); }
  // From the loss of that output, a scalar, to the gradients of all parameters.
  virtual void backward(const torch::Tensor& loss) { loss.backward(); }
  // In place of forward and backward, in a step in which this rank has no samples.
  virtual void skip_backward() {}
  // After the last backward of a step: afterwards every gradient is the one that the optimizer uses.
  virtual void finish_gradients() {}
  // After each optimizer step.
  virtual void after_step(int64_t step) { (void)step; }
  // Off while a step is recorded into a CUDA graph, whose events report no times. Between two steps. On at first.
  virtual void set_timing(bool on) { (void)on; }
  // Adds to a run's summary what only the strategy knows. Collective.
  virtual void summarize(const RunTotals& totals, int64_t steps, record::Summary& summary) {
    (void)totals, (void)steps, (void)summary;
  }

 protected:
  StepMonitor& monitor() const { return *monitor_; }

  Model& model_;

 private:
  StepMonitor* monitor_ = nullptr;
};

// One device.
inline std::unique_ptr<Strategy> single_strategy(Model& model) {
  return std::make_unique<Strategy>(model);
}

// DataParallel (Paszke et al. 2019): one process, one replica of the model per device, and the batch split among them
// as torch.chunk splits it. `model` is the main device's replica and has the first part; outputs are gathered there for
// the loss, gradients are summed there in the order of the devices. `others` are the models of the other devices, in
// their order, each made as `model` was. On a CPU a device is a group of compute threads, as many as
// torch::set_num_threads was last given; else each is the GPU that its model is on. Each model must be used by nobody
// else and outlive the strategy. A step throws what the first device that failed threw, after all have ended, and
// Error(usage) for an output whose first dimension is not the batch. On a CPU all devices draw from one random
// generator, in whatever order their threads get to it; each GPU has its own.
std::unique_ptr<Strategy> dp_strategy(Model& model, const std::vector<Model*>& others, int main_device);

struct DdpOptions {
  bool sync_buffers =
      true;                // rank 0's BatchNorm buffers on all ranks before each step and evaluation, as in PyTorch DDP
  int64_t hash_every = 0;  // steps between comparisons of all parameters over the ranks; 0: never
  bool replays = false;    // steps may be replayed as a CUDA graph
};

// DistributedDataParallel (Li et al. 2020): each rank has a replica, and the reducer averages the gradients. `reducer`
// is one over the trainable parameters of `model`; `gradients` is the one that autograd reports to: the same, or one
// that wraps it. Steps that wait for a bucket report its number as a phase. `ranks` has a backend.
std::unique_ptr<Strategy> ddp_strategy(Model& model, const RankGroup& ranks, BucketedReducer& reducer,
                                       Reducer& gradients, DdpOptions options);

}  // namespace ddprun::train
