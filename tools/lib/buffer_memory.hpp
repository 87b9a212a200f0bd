// The memory of buffers for collectives: the host's, or a GPU's, which the host fills and looks at through copies.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>

#include "ddprun/collective.hpp"
#include "tools/lib/cuda_runtime.hpp"

namespace ddprun::tools {

// Used by one thread, because a CUDA stream shared by two communicators would make each wait for the other.
class BufferMemory {
 public:
  // On the GPU with CUDA ordinal `device`; -1: in host memory. Throws Error as CudaRuntime does.
  explicit BufferMemory(int device);

  Memory kind() const { return gpu_ ? Memory::cuda : Memory::host; }
  // A collective of such buffers, on the stream of this object.
  Collective call(const void* send, void* recv, std::size_t count, DType dtype, Op op = Op::sum) const;

  // Not touched yet; page-aligned in host memory.
  std::shared_ptr<void> allocate(std::size_t bytes) const;
  void clear(void* memory, std::size_t bytes) const;
  // Copies between the host and a buffer, unless both are the same. get() first waits for the stream.
  void put(void* memory, const void* host, std::size_t bytes) const;
  void get(void* host, const void* memory, std::size_t bytes) const;
  // Blocks until the stream has done all its work.
  void finish() const;

 private:
  std::optional<CudaRuntime> gpu_;
  std::shared_ptr<void> stream_;
};

}  // namespace ddprun::tools
