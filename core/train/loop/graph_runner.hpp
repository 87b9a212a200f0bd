// GraphRunner: the steps of a training that are recorded once as a CUDA graph and replayed.
#pragma once

#include <functional>
#include <optional>

#include "train/loop/step_graph.hpp"
#include "train/loop/step_runner.hpp"
#include "train/optim/fused.hpp"

namespace ddprun::train {

// Training thread only. All that it is made from outlives it.
class GraphRunner {
 public:
  // `graph` is empty. The optimizer, a FusedOptimizer, counts its steps on the device from here on.
  GraphRunner(DeviceGraph& graph, torch::optim::Optimizer& optimizer, torch::Device device, int64_t batch_size,
              const std::optional<Schedule>& schedule);

  // Whether this step is replayed, after so many others of the run. The same on all ranks.
  bool takes(const TensorBatch& batch, int64_t steps_before) const { return graph_.takes(batch, steps_before); }
  // The learning rate of the next step. Only a rate that changes from step to step needs this.
  void set_rate(double rate) {
    if (rate_.defined()) rate_.fill_(rate);
  }
  // Records the step where no step was recorded before. The GPU must have nothing to do, and all steps before must have
  // been reported.
  bool is_recorded() const { return graph_.recorded(); }
  void record(const TensorBatch& batch, StepRunner& runner, Strategy& strategy, StepMonitor& monitor);
  // Queues the recorded step for this batch.
  void replay(const TensorBatch& batch, PendingStep& step, StepMonitor& monitor);

 private:
  const torch::Device device_;
  StepGraph graph_;
  torch::Tensor rate_;  // on the device, where a replayed step has another rate than the one before
};

}  // namespace ddprun::train
