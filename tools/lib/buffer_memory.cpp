#include "tools/lib/buffer_memory.hpp"

#include <cstring>

#include "ddprun/comm_backend.hpp"

namespace ddprun::tools {

BufferMemory::BufferMemory(int device) {
  if (device < 0) return;
  gpu_.emplace(device);
  stream_ = gpu_->make_stream();
}

Collective BufferMemory::call(const void* send, void* recv, std::size_t count, DType dtype, Op op) const {
  return {
      .send = send, .recv = recv, .count = count, .dtype = dtype, .op = op, .memory = kind(), .stream = stream_.get()};
}

std::shared_ptr<void> BufferMemory::allocate(std::size_t bytes) const {
  return gpu_ ? gpu_->allocate(bytes) : allocate_pages(bytes);
}

void BufferMemory::clear(void* memory, std::size_t bytes) const {
  if (!gpu_) {
    std::memset(memory, 0, bytes);
    return;
  }
  finish();
  gpu_->clear(memory, bytes);
}

void BufferMemory::put(void* memory, const void* host, std::size_t bytes) const {
  if (gpu_) return gpu_->to_device(memory, host, bytes);
  if (memory != host) std::memcpy(memory, host, bytes);
}

void BufferMemory::get(void* host, const void* memory, std::size_t bytes) const {
  finish();
  if (gpu_) return gpu_->to_host(host, memory, bytes);
  if (memory != host) std::memcpy(host, memory, bytes);
}

void BufferMemory::finish() const {
  if (gpu_) gpu_->synchronize(stream_.get());
}

}  // namespace ddprun::tools
