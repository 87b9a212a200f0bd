#include "tools/lib/benchmark_memory.hpp"

#include <cstring>


namespace ddprun::comm {

BenchmarkMemory::BenchmarkMemory(int device) {
  if (device < 0) return;
  gpu_.emplace(device);
  stream_ = gpu_->make_stream();
}

std::shared_ptr<void> BenchmarkMemory::allocate(std::size_t bytes) const {
  return gpu_ ? gpu_->allocate(bytes) : allocate_pages(bytes);
}

void BenchmarkMemory::clear(void* memory, std::size_t bytes) const {
  if (!gpu_) {
    std::memset(memory, 0, bytes);
    return;
  }
  finish();
  gpu_->clear(memory, bytes);
}

const void* BenchmarkMemory::read(const void* memory, std::size_t bytes) {
  if (!gpu_) return memory;
  finish();
  void* const host = staged(bytes);
  gpu_->to_host(host, memory, bytes);
  return host;
}

void BenchmarkMemory::finish() const {
  if (gpu_) gpu_->synchronize(stream_.get());
}

void* BenchmarkMemory::staged(std::size_t bytes) {
  if (staging_ == nullptr || staging_bytes_ < bytes) {
    staging_ = allocate_pages(bytes);
    staging_bytes_ = bytes;
  }
  return staging_.get();
}

}  // namespace ddprun::comm
