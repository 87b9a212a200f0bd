// GraphRunner: records a training step once as a CUDA graph and replays it.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <optional>

#include "comm/group.hpp"
#include "train/device/device_graph.hpp"
#include "train/loop/data_loader.hpp"
#include "train/loop/step_runner.hpp"
#include "train/loop/step_timer.hpp"
#include "train/optim/fused.hpp"

namespace ddprun::train {

// Which steps of a run are replayed as a CUDA graph, and the memory that the graph reads and writes.
// Training thread only. The decision is equal on all ranks, so that either all ranks replay a step or none does.
class StepGraph {
 public:
  // `graph` must be empty and outlive this object. batch_size: samples of this rank in a full step.
  StepGraph(DeviceGraph& graph, int64_t batch_size) : graph_(graph), batch_size_(batch_size) {}

  // Whether a step is replayed. The first steps of a run are not: in them optimizers create their state, cuDNN chooses
  // its algorithms, the bucket order is fixed and NCCL connects. A batch of another size or weight, such as the last of
  // an epoch, is not replayed either.
  bool takes(const TensorBatch& batch, int64_t steps_before) const;

  bool recorded() const { return !results_.parts.empty(); }
  // Records what `step` queues for a batch of this shape. The device must be idle. A step that throws is not recorded.
  void record(const TensorBatch& batch, const std::function<StepResults(const TensorBatch&)>& step);
  // Queues the recorded step for this batch. Each replay overwrites the results, which are on the device.
  const StepResults& replay(const TensorBatch& batch);

 private:
  DeviceGraph& graph_;
  const int64_t batch_size_;
  TensorBatch batch_;  // the graph reads it
  StepResults results_;
};

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
  // Whether a step has been recorded.
  bool is_recorded() const { return graph_.recorded(); }
  // Records the step. Call it once. The GPU must be idle, and all earlier steps must have been reported.
  void record(const TensorBatch& batch, StepRunner& runner, Strategy& strategy, StepMonitor& monitor);
  // Queues the recorded step for this batch.
  void replay(const TensorBatch& batch, PendingStep& step, StepMonitor& monitor);

 private:
  const torch::Device device_;
  StepGraph graph_;
  torch::Tensor rate_;  // on the device; used if the learning rate changes between replayed steps
};

// Waits on the host until a GPU has passed `end`, which is queued after a replayed step. After the timeout it aborts
// the group and throws Error(peer). The backend cannot do this: it does not see the collectives that a CUDA graph
// replays.
void wait_for_replay(const comm::Group& ranks, const c10::Event& end);

}  // namespace ddprun::train
