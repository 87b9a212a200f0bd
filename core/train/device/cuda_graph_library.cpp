// All of libddprun_cuda_graph.so: the one file that needs CUDA's headers. It uses no more of LibTorch than CUDAGraph.
#include <ATen/cuda/CUDAGraph.h>

#include "train/device/device_graph.hpp"

namespace ddprun::train {
namespace {

class CudaGraph final : public DeviceGraph {
 public:
  // Other threads, of the loader and of communication, may do meanwhile what a capture does not allow.
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
