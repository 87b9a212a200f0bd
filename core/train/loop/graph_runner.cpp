#include "train/loop/graph_runner.hpp"

#include <chrono>
#include <string>
#include <thread>

#include "ddprun/error.hpp"
#include "train/device/cuda.hpp"

namespace ddprun::train {
namespace {

constexpr int64_t kEagerSteps = 3;  // as torch.cuda.make_graphed_callables

// Ends the recording even if an exception is thrown.
class Recording {
 public:
  explicit Recording(DeviceGraph& graph) : graph_(graph) { graph_.begin(); }
  ~Recording() {
    if (!under_way_) return;
    try {
      graph_.end();
    } catch (const c10::Error&) {  // the recording failed before; that error has been reported already
    }
  }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  void end() {
    under_way_ = false;
    graph_.end();
  }

 private:
  DeviceGraph& graph_;
  bool under_way_ = true;
};

}  // namespace

bool StepGraph::takes(const TensorBatch& batch, int64_t steps_before) const {
  return steps_before >= kEagerSteps && batch.size == batch_size_ && batch.weight == 1;
}

void StepGraph::record(const TensorBatch& batch, const std::function<StepResults(const TensorBatch&)>& step) {
  batch_ = batch;
  batch_.input = batch.input.clone();
  batch_.target = batch.target.clone();
  Recording recording(graph_);
  StepResults results = step(batch_);
  recording.end();
  results_ = std::move(results);
}

const StepResults& StepGraph::replay(const TensorBatch& batch) {
  batch_.input.copy_(batch.input);
  batch_.target.copy_(batch.target);
  graph_.replay();
  return results_;
}

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

namespace {

// An event often returns the CUDA error of an aborted collective.
bool is_over(const comm::Group& ranks, const c10::Event& event) {
  try {
    return event.query();
  } catch (const c10::Error&) {
    ranks.check();
    throw;
  }
}

}  // namespace

void wait_for_replay(const comm::Group& ranks, const c10::Event& end) {
  if (!ranks.has_backend()) return end.synchronize();
  const auto deadline = std::chrono::steady_clock::now() + ranks.timeout();
  while (!is_over(ranks, end)) {
    ranks.check();
    if (std::chrono::steady_clock::now() >= deadline) {
      ranks.backend().abort();
      throw Error(ExitCode::peer, "the CUDA graph of a step has not ended within " +
                                      std::to_string(ranks.timeout().count()) +
                                      " ms: a rank that hangs or is gone, or a step that takes longer than "
                                      "comm.timeout");
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  ranks.check();  // an aborted collective also completes, but without a result
}

}  // namespace ddprun::train
