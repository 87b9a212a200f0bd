// The fake runtime's graphs: those of gpu_graph.hpp, under handles.
#include <map>
#include <memory>
#include <mutex>

#include "cudart.hpp"

namespace {

namespace gpu = ddprun::fake_gpu;
using namespace ddprun::fake_cudart;

// A graph and its executable are one object here, with two handles.
class Graphs {
 public:
  template <class Handle>
  Handle add(std::shared_ptr<gpu::Graph> graph) {
    const std::lock_guard lock(mutex_);
    graphs_[++last_] = std::move(graph);
    return reinterpret_cast<Handle>(static_cast<std::intptr_t>(last_));
  }
  template <class Handle>
  std::shared_ptr<gpu::Graph> at(Handle handle) {
    const std::lock_guard lock(mutex_);
    return graphs_.at(number_of(handle));
  }
  template <class Handle>
  void remove(Handle handle) {
    const std::lock_guard lock(mutex_);
    graphs_.erase(number_of(handle));
  }

 private:
  std::mutex mutex_;
  std::map<std::int64_t, std::shared_ptr<gpu::Graph>> graphs_;
  std::int64_t last_ = 0;
};

Graphs& graphs() {
  static auto& all = *new Graphs;
  return all;
}

}  // namespace

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  if (mode != cudaStreamCaptureModeThreadLocal) return failed(cudaErrorNotSupported);
  return answer([&] { gpu::begin_capture(stream_of(stream)); });
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = nullptr;
  return answer([&] { *graph = graphs().add<cudaGraph_t>(gpu::end_capture(stream_of(stream))); });
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* replayable, cudaGraph_t graph, unsigned long long) {
  *replayable = graphs().add<cudaGraphExec_t>(graphs().at(graph));
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  return answer([&] { gpu::replay(graphs().at(graph), stream_of(stream)); });
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  graphs().remove(graph);
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  graphs().remove(graph);
  return cudaSuccess;
}

}  // extern "C"
