#include "train/loop/step_graph.hpp"

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

}  // namespace ddprun::train
