// A CUDA graph: the work of several streams, recorded once and replayed as a whole.
#pragma once

#include <memory>

namespace ddprun::train {

// Single-threaded. The thread must use one stream as its current stream throughout, not the device's default stream,
// which CUDA cannot capture. Throws c10::Error for CUDA errors.
class DeviceGraph {
 public:
  virtual ~DeviceGraph() = default;
  // Until end(), work that any thread queues is recorded and not run: on the current stream and on streams that events
  // fork from it and join again. Meanwhile this thread must not wait for the device or read from it. Memory that is
  // allocated meanwhile belongs to the graph: its address stays the same, and every replay writes to it.
  virtual void begin() = 0;
  virtual void end() = 0;
  // Queues the recorded work on the current stream. Random numbers continue as if the work had been queued step by
  // step.
  virtual void replay() = 0;
};

// An empty graph, implemented with LibTorch's CUDAGraph. This needs CUDA's headers, so it is in a separate library,
// libddprun_cuda_graph.so, in the folder of ddprun's libraries, which is loaded here. Call it after load_cuda(). Throws
// Error(plugin), one line, if the library is missing or was built for another LibTorch.
std::unique_ptr<DeviceGraph> make_device_graph();

}  // namespace ddprun::train
