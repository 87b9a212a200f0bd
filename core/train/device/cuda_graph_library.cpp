// The source of libddprun_cuda_graph.so: the only file that needs CUDA's headers. It uses only CUDAGraph of LibTorch.
#include <ATen/cuda/CUDAGraph.h>

#include "train/device/device_graph.hpp"

namespace ddprun::train {
namespace {

class CudaGraph final : public DeviceGraph {
 public:
  // thread_local capture mode: other threads, of the DataLoader and of communication, may make CUDA calls that a
  // capture forbids.
  void begin() override { graph_.capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal); }
  void end() override { graph_.capture_end(); }
  void replay() override { graph_.replay(); }

 private:
  at::cuda::CUDAGraph graph_;
};

}  // namespace
}  // namespace ddprun::train

extern "C" __attribute__((visibility("default"))) ddprun::train::DeviceGraph* ddprun_new_cuda_graph() {
  return new ddprun::train::CudaGraph;
}
