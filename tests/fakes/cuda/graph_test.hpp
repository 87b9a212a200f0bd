// For tests of LibTorch's CUDAGraph on the fake device.
#pragma once

#include "torch_test.hpp"

#include <ATen/cuda/CUDAGraph.h>

#include <functional>

#include "gpu_graph.hpp"

namespace ddprun::fake_gpu {

// On a stream of its own, as a capture has to be; what was on the device before is done.
class OnSide {
 public:
  OnSide() { guard().synchronizeDevice(0); }
  ~OnSide() { guard().synchronizeDevice(0); }

 private:
  c10::StreamGuard on_{another()};
};

// Without what a refused body leaves behind.
inline void capture(at::cuda::CUDAGraph& graph, const std::function<void()>& body) {
  graph.capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
  try {
    body();
  } catch (...) {
    CHECK_THROWS(graph.capture_end());
    throw;
  }
  graph.capture_end();
}

}  // namespace ddprun::fake_gpu
