// Memory and streams of a GPU for torch-free programs (the benchmark, the conformance suite), over the CUDA runtime.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace ddprun::cuda {

// One GPU. The memory and the streams that it gives outlive it. Any thread, once that has called make_current(). Every
// function throws Error(failure) with CUDA's words where a call fails, in which an earlier piece of work on the GPU may
// have failed.
class Runtime {
 public:
  // Loads libcudart.so.13: the one that this process has, else the one that this build was made with, and makes the GPU
  // `device`, CUDA's ordinal, current on this thread. Throws Error(plugin) where there is no such library or GPU.
  explicit Runtime(int device);
  ~Runtime();

  // CUDA's current device is a thread's own.
  void make_current() const;

  // Bytes on the GPU, uninitialised, aligned to 256. Giving them back waits for the GPU.
  std::shared_ptr<void> allocate(std::size_t bytes) const;
  // Zeroes, or copies from or to the host's memory. Returns when it is done. Waits for no stream of ours: synchronize()
  // is the caller's.
  void clear(void* memory, std::size_t bytes) const;
  void to_device(void* memory, const void* host, std::size_t bytes) const;
  void to_host(void* host, const void* memory, std::size_t bytes) const;

  // A cudaStream_t that waits for no other.
  std::shared_ptr<void> make_stream() const;
  // Blocks until all that the stream holds is done.
  void synchronize(void* stream) const;

  // Records what `work` gives to the stream, instead of doing it, as a cudaGraphExec_t that goes before the runtime.
  // Captured thread-locally: other threads may use the GPU meanwhile. Throws what `work` throws.
  std::shared_ptr<void> capture(void* stream, const std::function<void()>& work) const;
  // Queues it on the stream. The graph lives until that is done.
  void replay(void* graph, void* stream) const;

 private:
  struct Functions;
  static std::shared_ptr<const Functions> load();
  void check(const char* what, int result) const;

  std::shared_ptr<const Functions> functions_;
  int device_;
};

}  // namespace ddprun::cuda
