// at::cuda::CUDAGraph, as LibTorch's header declares it, over the graphs of gpu_graph.hpp.
#include <ATen/Context.h>
#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <ATen/cuda/CUDAGraph.h>

#include "gpu_graph.hpp"
#include "torch_streams.hpp"

namespace fake_gpu = ddprun::fake_gpu;

namespace at::cuda {
namespace {

// The class's pointer to a CUDA graph points to this.
struct Held {
  Tensor generator;  // its state at the start: a capture draws no random numbers
  std::shared_ptr<fake_gpu::Graph> graph;
};

Held* held_by(cudaGraph_t graph) {
  return reinterpret_cast<Held*>(graph);
}

c10::Stream current() {
  return c10::impl::VirtualGuardImpl(kCUDA).getStream({kCUDA, static_cast<DeviceIndex>(fake_gpu::current_device())});
}

Generator generator_of(DeviceIndex device) {
  return globalContext().defaultGenerator({kCUDA, device});
}

}  // namespace

CUDAGraph::CUDAGraph(bool keep_graph)
    : capture_stream_(c10::cuda::CUDAStream::UNCHECKED, current()), keep_graph_(keep_graph) {}

CUDAGraph::~CUDAGraph() {
  reset();
}

void CUDAGraph::capture_begin(MempoolId_t, cudaStreamCaptureMode capture_mode) {
  TORCH_CHECK(!has_graph_exec_,
              "This CUDAGraph instance already owns a captured graph. To capture a new graph, create a new instance.");
  TORCH_CHECK(capture_mode == cudaStreamCaptureModeThreadLocal, "a fake GPU captures in thread-local mode only");
  const c10::Stream stream = current();
  TORCH_CHECK(stream.id() != 0,
              "CUDA graphs must be captured on a non-default stream. (However, after capture, it's ok to replay them "
              "on the default stream.)");
  capture_stream_ = c10::cuda::CUDAStream(stream);
  capture_dev_ = stream.device_index();
  fake_gpu::as_torch([&] { fake_gpu::begin_capture(fake_gpu::stream_of(stream)); });
  graph_ = reinterpret_cast<cudaGraph_t>(new Held{generator_of(capture_dev_).get_state(), nullptr});
}

void CUDAGraph::capture_end() {
  const c10::Stream stream = current();
  TORCH_CHECK(stream == capture_stream_.unwrap(), "Capture must end on the same stream it began on.");
  if (graph_ != nullptr) generator_of(capture_dev_).set_state(held_by(graph_)->generator);
  auto graph = fake_gpu::as_torch([&] { return fake_gpu::end_capture(fake_gpu::stream_of(stream)); });
  held_by(graph_)->graph = std::move(graph);
  capture_ended_ = has_graph_exec_ = true;
}

void CUDAGraph::replay() {
  TORCH_CHECK(capture_ended_, "Called CUDAGraph::replay without a preceding successful capture.");
  const c10::DeviceGuard here(capture_stream_.device());
  fake_gpu::as_torch([&] { fake_gpu::replay(held_by(graph_)->graph, fake_gpu::stream_of(current())); });
}

void CUDAGraph::reset() {
  delete held_by(std::exchange(graph_, nullptr));
  capture_ended_ = has_graph_exec_ = false;
}

}  // namespace at::cuda
