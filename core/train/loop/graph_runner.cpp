#include "train/loop/graph_runner.hpp"

#include "train/device/gpu_memory.hpp"

namespace ddprun::train {

GraphRunner::GraphRunner(DeviceGraph& graph, torch::optim::Optimizer& optimizer, torch::Device device,
                         int64_t batch_size, const std::optional<Schedule>& schedule)
    : device_(device), graph_(graph, batch_size) {
  std::optional<torch::Tensor> rate;
  if (schedule && !is_constant(*schedule)) {
    rate = rate_ = torch::zeros({}, torch::TensorOptions(device_).dtype(torch::kFloat32));
  }
  dynamic_cast<FusedOptimizer&>(optimizer).stay_on_device(std::move(rate));
}

// A graph cannot use memory that LibTorch caches for other steps, so the cached memory is freed first.
void GraphRunner::record(const TensorBatch& batch, StepRunner& runner, Strategy& strategy, StepMonitor& monitor) {
  release_spare_memory(device_);
  monitor.timer.set_timing(false);
  strategy.set_timing(false);
  record::StepRecord unused;
  graph_.record(batch, [&](const TensorBatch& fixed) { return runner.run(fixed, unused); });
  strategy.set_timing(true);
  monitor.timer.set_timing(true);
}

void GraphRunner::replay(const TensorBatch& batch, PendingStep& step, StepMonitor& monitor) {
  monitor.phase(Phase::graph);
  record::StepRecord& record = step.record;
  record.forward = record.backward = record.comm = record.optimizer = record::kAbsent;
  record.graph = 0;
  step.results = copy_to_host(graph_.replay(batch));
  monitor.timer.lap(record, &record::StepRecord::graph);
}

}  // namespace ddprun::train
