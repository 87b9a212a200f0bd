// The steps of LoopTrainer that are replayed as a CUDA graph.
#include <utility>

#include "train/device/gpu_memory.hpp"
#include "train/loop/loop_trainer.hpp"

namespace ddprun::train {

using launch::Phase;

// Before the first step.
void LoopTrainer::use_graph(DeviceGraph& graph) {
  graph_.emplace(graph, parts_.train.batch_size());
  std::optional<torch::Tensor> rate;
  if (parts_.step.schedule && !is_constant(*parts_.step.schedule)) {
    rate = rate_ = torch::zeros({}, torch::TensorOptions(device_).dtype(torch::kFloat32));
  }
  fused_->stay_on_device(std::move(rate));
}

// The GPU does first what it has to, and it is told: memory that a step still uses could not be the graph's.
void LoopTrainer::record_graph(const TensorBatch& batch) {
  settle_last();
  release_spare_memory(device_);
  timer_.take_times(false);
  take_times(false);
  record::StepRecord unused;
  graph_->record(batch, [&](const TensorBatch& fixed) { return step_of(fixed, unused); });
  take_times(true);
  timer_.take_times(true);
}

void LoopTrainer::replay(const TensorBatch& batch, IssuedStep& step) {
  parts_.observer.phase(Phase::graph, step_, -1);
  record::StepRecord& record = step.record;
  record.forward = record.backward = record.comm = record.optimizer = record::kAbsent;
  record.graph = 0;
  step.results = copy_late(graph_->replay(batch));
  timer_.lap(record, &record::StepRecord::graph);
}

void LoopTrainer::wait_for_replay(const IssuedStep& step) {
  parts_.observer.phase(Phase::graph, step.record.step, -1);  // the next step is under way
  wait_for(step.marks.back().event);
}

}  // namespace ddprun::train
