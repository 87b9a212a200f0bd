// A CUDA graph: what streams were asked to do, recorded once and replayed as one piece of work.
#pragma once

#include <memory>

namespace ddprun::train {

// One thread, with one stream as its current one throughout, which is not the device's default stream: CUDA records
// none there. Throws c10::Error for what CUDA refuses.
class DeviceGraph {
 public:
  virtual ~DeviceGraph() = default;
  // What any thread queues from here to end(), on the current stream and on those that events fork from it and join
  // again, is recorded and not run. Meanwhile this thread waits for nothing on the device and reads nothing from it.
  // Memory that is allocated then is the graph's: it keeps its place, and every replay writes to it.
  virtual void begin() = 0;
  virtual void end() = 0;
  // Queues the recorded work on the current stream. Random numbers go on as they would piece by piece.
  virtual void replay() = 0;
};

// An empty one, by LibTorch's CUDAGraph. That needs CUDA's headers, so it is in a library of its own,
// libddprun_cuda_graph.so, which is loaded here, from beside ddprun's own. After load_cuda(). Throws Error(plugin), one
// line, where it is missing or not of this LibTorch.
std::unique_ptr<DeviceGraph> make_device_graph();

}  // namespace ddprun::train
