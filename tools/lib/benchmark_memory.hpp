// The memory of a benchmark's buffers: the host's, or a GPU's, which the host fills and looks at through copies.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "cuda/runtime.hpp"
#include "ddprun/comm_backend.hpp"

namespace ddprun::comm {

// One thread.
class BenchmarkMemory {
 public:
  // On the GPU `device`, CUDA's ordinal; -1: in host memory. Throws Error as cuda::Runtime does.
  explicit BenchmarkMemory(int device);

  Memory kind() const { return gpu_ ? Memory::cuda : Memory::host; }
  void* stream() const { return stream_.get(); }

  // Not touched yet; page-aligned in host memory.
  std::shared_ptr<void> allocate(std::size_t bytes) const;
  void clear(void* memory, std::size_t bytes) const;

  // fill(host) where the host can write; then `memory` holds the same.
  template <class Fill>
  void write(void* memory, std::size_t bytes, Fill&& fill) {
    void* const host = gpu_ ? staged(bytes) : memory;
    fill(host);
    if (gpu_) gpu_->to_device(memory, host, bytes);
  }
  // What `memory` holds once all is done that the stream has; valid until the next call of this object.
  const void* read(const void* memory, std::size_t bytes);

  // Blocks until all is done that the stream has.
  void finish() const;

 private:
  void* staged(std::size_t bytes);

  std::optional<cuda::Runtime> gpu_;
  std::shared_ptr<void> stream_;
  std::shared_ptr<void> staging_;
  std::size_t staging_bytes_ = 0;
};

}  // namespace ddprun::comm
