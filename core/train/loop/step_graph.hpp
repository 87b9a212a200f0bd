// Which steps of a run are replayed as a CUDA graph, and the memory that the graph reads and writes.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <functional>

#include "train/device/device_graph.hpp"
#include "train/loop/data_loader.hpp"
#include "train/loop/step_results.hpp"

namespace ddprun::train {

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

}  // namespace ddprun::train
