#include "train/device/gpu_memory.hpp"

#include <c10/core/CachingDeviceAllocator.h>

#include "train/device/streams.hpp"

namespace ddprun::train {
namespace {

// Calls `work` with the allocator of the device's type if this LibTorch has that interface. The template parameter Type
// delays the check until instantiation.
template <class Type, class Work>
void with_allocator(const Type& type, Work work) {
  if constexpr (requires { getDeviceAllocator(type); }) work(*getDeviceAllocator(type));
}

}  // namespace

GpuMemory peak_memory(torch::Device gpu) {
  GpuMemory peak;
  with_allocator(gpu.type(), [&](auto& allocator) {
    constexpr std::size_t all = 0;  // index of the total over all memory pools
    const auto stats = allocator.getDeviceStats(gpu.index());
    peak = {stats.allocated_bytes[all].peak, stats.reserved_bytes[all].peak};
  });
  return peak;
}

void reset_peak_memory(torch::Device gpu) {
  with_allocator(gpu.type(), [&](auto& allocator) { allocator.resetPeakStats(gpu.index()); });
}

void release_spare_memory(torch::Device gpu) {
  synchronize(gpu);
  with_allocator(gpu.type(), [](auto& allocator) { allocator.emptyCache(); });
}

}  // namespace ddprun::train
