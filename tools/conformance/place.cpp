#include "tools/conformance/place.hpp"

#include <bit>
#include <cstdint>
#include <cstring>

namespace ddprun::conformance {
namespace {

constexpr std::size_t kLine = 64;

}  // namespace

Place::Place(int device) {
  if (device < 0) return;
  gpu_.emplace(device);
  stream_ = gpu_->make_stream();
}

Collective Place::call(const void* send, void* recv, std::size_t count, DType dtype, Op op) const {
  return {.send = send,
          .recv = recv,
          .count = count,
          .dtype = dtype,
          .op = op,
          .memory = gpu_ ? Memory::cuda : Memory::host,
          .stream = stream_.get()};
}

std::shared_ptr<void> Place::allocate(std::size_t bytes) const {
  const std::size_t size = std::bit_ceil(bytes);
  auto kept = pool_->extract(size);
  std::shared_ptr<void> memory = kept.empty() ? gpu_->allocate(size) : std::move(kept.mapped());
  return {memory.get(), [pool = pool_, size, memory](void*) { pool->emplace(size, memory); }};
}

void Place::put(void* memory, const void* host, std::size_t bytes) const {
  if (gpu_) return gpu_->to_device(memory, host, bytes);
  if (memory != host) std::memcpy(memory, host, bytes);
}

void Place::get(void* host, const void* memory, std::size_t bytes) const {
  if (gpu_) {
    gpu_->synchronize(stream_.get());
    return gpu_->to_host(host, memory, bytes);
  }
  if (memory != host) std::memcpy(host, memory, bytes);
}

Image::Image(const Place& place, void* host, std::size_t bytes)
    : place_(place), host_(static_cast<unsigned char*>(host)), bytes_(bytes), first_(host_) {
  if (!place.gpu_) return;
  memory_ = place.allocate(bytes + kLine);
  first_ = static_cast<unsigned char*>(memory_.get()) + reinterpret_cast<std::uintptr_t>(host) % kLine;
}

void* Image::at(const void* host) const {
  return host == nullptr ? nullptr : first_ + (static_cast<const unsigned char*>(host) - host_);
}

}  // namespace ddprun::conformance
