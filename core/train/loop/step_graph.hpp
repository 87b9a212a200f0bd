// Which steps of a run are replayed as a CUDA graph, and the memory that the graph reads and writes.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <functional>

#include "train/device/device_graph.hpp"
#include "train/loop/data_loader.hpp"
#include "train/loop/step_results.hpp"

namespace ddprun::train {

// One thread, that of the trainer. What decides is equal on all ranks, so that all replay or none does.
class StepGraph {
 public:
  // `graph` is empty, and must outlive the result. batch_size: samples of this rank in a full step.
  StepGraph(DeviceGraph& graph, int64_t batch_size) : graph_(graph), batch_size_(batch_size) {}

  // Whether a step is replayed: not the first ones of a run, in which optimizers make their state, cuDNN its choice,
  // buckets their order and NCCL its connections; nor a batch of another size or weight, the last of an epoch.
  bool takes(const TensorBatch& batch, int64_t steps_before) const;

  bool recorded() const { return !results_.parts.empty(); }
  // Records what `step` queues for a batch of this shape. The device has nothing to do. A step that throws is not
  // recorded.
  void record(const TensorBatch& batch, const std::function<StepResults(const TensorBatch&)>& step);
  // Queues the recorded step for this batch. The results, on the device, are those of each replay in turn.
  const StepResults& replay(const TensorBatch& batch);

 private:
  DeviceGraph& graph_;
  const int64_t batch_size_;
  TensorBatch batch_;  // that the graph reads
  StepResults results_;
};

}  // namespace ddprun::train
