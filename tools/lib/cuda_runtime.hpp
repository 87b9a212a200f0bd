// GPU memory and streams through the CUDA runtime.
#pragma once

#include <cstddef>
#include <memory>

namespace ddprun::tools {

// One GPU. Its memory and streams may outlive this object. Any thread may use it after make_current(). Every function
// throws Error(failure) with CUDA's message if a call fails; the cause may be earlier work on the GPU.
class CudaRuntime {
 public:
  // Loads libcudart.so.13: the one that is already in this process, otherwise the one that this build was made with.
  // Makes the GPU `device` (CUDA device index) current on this thread. Throws Error(plugin) if there is no such library
  // or GPU.
  explicit CudaRuntime(int device);

  // Every thread has its own current device in CUDA.
  void make_current() const;

  // Uninitialized GPU memory, aligned to 256 bytes. Freeing it waits for the GPU.
  std::shared_ptr<void> allocate(std::size_t bytes) const;
  // Zeroes memory, or copies to or from host memory. Returns when it is done. Does not wait for other streams; the
  // caller must call synchronize().
  void clear(void* memory, std::size_t bytes) const;
  void to_device(void* memory, const void* host, std::size_t bytes) const;
  void to_host(void* host, const void* memory, std::size_t bytes) const;

  // A cudaStream_t that does not synchronize with other streams.
  std::shared_ptr<void> make_stream() const;
  // Blocks until all work on the stream is done.
  void synchronize(void* stream) const;

 private:
  struct Functions;
  static std::shared_ptr<const Functions> load();
  void check(const char* what, int result) const;

  std::shared_ptr<const Functions> functions_;
  int device_;
};

}  // namespace ddprun::tools
