// For tests of LibTorch's CUDAGraph on the fake device.
#pragma once

#include "torch_test.hpp"

#include <ATen/cuda/CUDAGraph.h>

#include <functional>

#include "gpu_graph.hpp"

namespace ddprun::fake_gpu {

// On a new stream, as a capture requires, after all earlier work of the device.
class OnSide {
 public:
  OnSide() { guard().synchronizeDevice(0); }
  ~OnSide() { guard().synchronizeDevice(0); }

 private:
  c10::StreamGuard on_{another()};
};

// Cleans up after a refused body.
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
