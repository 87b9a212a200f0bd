// GraphRunner: records a training step once as a CUDA graph and replays it.
#pragma once

#include <functional>
#include <optional>

#include "train/loop/step_graph.hpp"
#include "train/loop/step_runner.hpp"
#include "train/optim/fused.hpp"

namespace ddprun::train {

// Training thread only. All constructor arguments must outlive it.
class GraphRunner {
 public:
  // `graph` must be empty. The optimizer is a FusedOptimizer; from here on it counts its steps on the device.
  GraphRunner(DeviceGraph& graph, torch::optim::Optimizer& optimizer, torch::Device device, int64_t batch_size,
              const std::optional<Schedule>& schedule);

  // Whether this step is replayed, given the number of steps done before it. The same on all ranks.
  bool takes(const TensorBatch& batch, int64_t steps_before) const { return graph_.takes(batch, steps_before); }
  // Sets the learning rate of the next step. Needed only if the rate changes from step to step.
  void set_rate(double rate) {
    if (rate_.defined()) rate_.fill_(rate);
  }
  // Records the step if none was recorded before. The GPU must be idle, and all earlier steps must have been reported.
  bool is_recorded() const { return graph_.recorded(); }
  void record(const TensorBatch& batch, StepRunner& runner, Strategy& strategy, StepMonitor& monitor);
  // Queues the recorded step for this batch.
  void replay(const TensorBatch& batch, PendingStep& step, StepMonitor& monitor);

 private:
  const torch::Device device_;
  StepGraph graph_;
  torch::Tensor rate_;  // on the device; used if the learning rate changes between replayed steps
};

}  // namespace ddprun::train
