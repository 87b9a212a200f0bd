// Strategy: how several devices or ranks train one model. There are three: single, dp and ddp.
#pragma once

#include <torch/torch.h>

#include <functional>
#include <memory>
#include <vector>

#include "comm/group.hpp"
#include "ddprun/plugin/model_plugin.hpp"
#include "ddprun/records.hpp"
#include "record/recorder.hpp"
#include "train/loop/step_monitor.hpp"

namespace ddprun::train {

class GradientSync;

// The defaults are those of a single device. Training thread only. Throws what the model, the reducer and the backend
// throw.
class Strategy {
 public:
  explicit Strategy(Model& model) : model_(model) {}
  virtual ~Strategy() = default;

  // Sets the monitor for phases and times. The loop calls it once, before anything else.
  void attach(StepMonitor& monitor) { monitor_ = &monitor; }

  // Once, before the first step. Afterwards all replicas are equal.
  virtual void prepare() {}
  // Before each training step and before an evaluation: makes the model's buffers equal on all replicas.
  virtual void synchronize_buffers() {}
  // Calls body(part) for parts 0 .. count - 1 of a step or of a batch of an evaluation: those of this rank's virtual
  // ranks. Without virtual ranks, there is one part. It may call body(0) again first; then only the last call counts.
  virtual void in_parts(int count, const std::function<void(int part)>& body) {
    for (int part = 0; part < count; ++part) body(part);
  }
  // Before each forward and backward; a part has several with gradient accumulation. Gradients are averaged only after
  // the last one of a step; until then each rank sums its own.
  virtual void begin_micro_batch(bool last) { (void)last; }
  // The model's output [samples, ...] for an input batch, in training and in evaluation.
  virtual torch::Tensor forward(const torch::Tensor& input) { return model_.forward(input); }
  // From the loss of that output, a scalar, to the gradients of all parameters.
  virtual void backward(const torch::Tensor& loss) { loss.backward(); }
  // Replaces forward and backward in a part without samples.
  virtual void skip_backward() {}
  // After the last backward of a step. Afterwards the gradients are those that the optimizer uses.
  virtual void finish_gradients() {}
  // After each optimizer step.
  virtual void after_step(int64_t step) { (void)step; }
  // Adds the strategy's own values to the summary of a run. Collective.
  virtual void summarize(const record::RunTotals& totals, int64_t steps, record::Summary& summary) {
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

// DataParallel (Paszke et al. 2019): one process and one replica of the model per device; the batch is split among the
// devices as torch.chunk does. `model` is the replica of the first device, the main one. The main device gathers the
// outputs for the loss and sums the gradients in device order. `others` are the models of the other devices, in device
// order, made in the same way as `model`. On a CPU, a device is a group of compute threads, as many as
// torch::set_num_threads was last given; otherwise it is the GPU that holds the model. Nothing else may use the models,
// and they must outlive the strategy. A step throws the exception of the first device that failed, after all devices
// have finished; it throws Error(usage) if the first dimension of the output is not the batch. On a CPU all devices
// share one random generator, and the order of their draws is not fixed; each GPU has its own generator.
std::unique_ptr<Strategy> dp_strategy(Model& model, const std::vector<Model*>& others);

// DistributedDataParallel (Li et al. 2020): each rank has a replica, and `sync` averages the gradients of `model`. A
// step that waits for a bucket reports the bucket's number with its phase. `ranks` must have a backend, that of `sync`.
// hash_every: number of steps between comparisons of all parameters over the ranks; 0: never.
std::unique_ptr<Strategy> ddp_strategy(Model& model, const comm::Group& ranks, GradientSync& sync,
                                       int64_t hash_every = 0);

}  // namespace ddprun::train
