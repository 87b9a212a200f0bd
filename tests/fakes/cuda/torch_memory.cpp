// Torch's CUDA allocator on host memory, with statistics for each device. New memory is NaN, so that it cannot be
// mistaken for a result.
#include <c10/core/CachingDeviceAllocator.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "fakes/cuda/machine.hpp"
#include "torch_streams.hpp"

namespace ddprun::fake_gpu {
namespace {

using c10::CachingAllocator::StatType;
using c10::CachingDeviceAllocator::DeviceStats;

constexpr std::size_t kAlignment = 512;  // of CUDA's allocations

class Figures {
 public:
  void count(int device, std::int64_t bytes) {
    const std::lock_guard lock(mutex_);
    DeviceStats& stats = of(device);
    const auto change = [](auto& all, std::int64_t by) {
      auto& one = all[static_cast<std::size_t>(StatType::AGGREGATE)];
      by > 0 ? one.increase(static_cast<std::size_t>(by)) : one.decrease(static_cast<std::size_t>(-by));
    };
    change(stats.allocation, bytes > 0 ? 1 : -1);
    for (auto* const all :
         {&stats.allocated_bytes, &stats.requested_bytes, &stats.active_bytes, &stats.reserved_bytes}) {
      change(*all, bytes);
    }
  }
  DeviceStats get(int device) {
    const std::lock_guard lock(mutex_);
    return of(device);
  }
  void reset_peak(int device) { reset(device, &c10::CachingAllocator::Stat::reset_peak); }
  void reset_accumulated(int device) { reset(device, &c10::CachingAllocator::Stat::reset_accumulated); }
  std::size_t allocated(int device) {
    return static_cast<std::size_t>(get(device).allocated_bytes[static_cast<std::size_t>(StatType::AGGREGATE)].current);
  }

 private:
  DeviceStats& of(int device) { return stats_.at(static_cast<std::size_t>(device)); }
  void reset(int device, void (c10::CachingAllocator::Stat::*how)()) {
    const std::lock_guard lock(mutex_);
    DeviceStats& stats = of(device);
    for (auto* const all : {&stats.allocation, &stats.allocated_bytes, &stats.requested_bytes, &stats.active_bytes,
                            &stats.reserved_bytes}) {
      for (auto& one : *all) (one.*how)();
    }
  }

  std::mutex mutex_;
  std::array<DeviceStats, 64> stats_{};
};

Figures& figures() {
  static auto* const one = new Figures;
  return *one;
}

// The content of a device DataPtr.
struct Owned {
  void* memory;
  std::size_t bytes;
  int device;
  c10::DataPtr adopted;  // null if this allocator owns the memory
};

void give_back(void* context) {
  const std::shared_ptr<Owned> owned(static_cast<Owned*>(context));
  figures().count(owned->device, -static_cast<std::int64_t>(owned->bytes));
  freed(owned->memory, [owned] {
    if (!owned->adopted) std::free(owned->memory);
  });
}

c10::DataPtr owned_by_device(std::unique_ptr<Owned> owned) {
  const c10::Device device(c10::kCUDA, static_cast<c10::DeviceIndex>(owned->device));
  figures().count(owned->device, static_cast<std::int64_t>(owned->bytes));
  allocated(owned->memory, owned->bytes, current_stream(device));
  void* const memory = owned->memory;
  return {memory, owned.release(), &give_back, device};
}

// Free and total memory.
std::pair<std::size_t, std::size_t> memory_of(int device) {
  const std::size_t total = testing::fake_memory(device), used = figures().allocated(device);
  return {total > used ? total - used : 0, total};
}

class Memory final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    const int device = current_device();
    if (bytes == 0) return {nullptr, {c10::kCUDA, static_cast<c10::DeviceIndex>(device)}};
    const auto [free, total] = memory_of(device);
    TORCH_CHECK_WITH(OutOfMemoryError, bytes <= free, "CUDA out of memory. Tried to allocate ", bytes, " bytes. GPU ",
                     device, " has a total capacity of ", total, " bytes of which ", free,
                     " is free. This process holds the rest.");
    void* const memory = std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
    std::memset(memory, 0xff, bytes);  // not a number, in every format of floating point
    return owned_by_device(std::unique_ptr<Owned>(new Owned{memory, bytes, device, {}}));
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }

  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override {}
  void recordStream(const c10::DataPtr& memory, c10::Stream stream) override {
    used_on(memory.get(), stream_of(stream));
  }
  DeviceStats getDeviceStats(c10::DeviceIndex device) override { return figures().get(device); }
  void resetAccumulatedStats(c10::DeviceIndex device) override { figures().reset_accumulated(device); }
  void resetPeakStats(c10::DeviceIndex device) override { figures().reset_peak(device); }
  std::pair<std::size_t, std::size_t> getMemoryInfo(c10::DeviceIndex device) override { return memory_of(device); }
};

const bool registered = [] {
  c10::SetAllocator(c10::kCUDA, new Memory);
  return true;
}();

}  // namespace

c10::DataPtr adopt(c10::DataPtr memory, std::size_t bytes, c10::Device device) {
  if (memory.get() == nullptr) return {nullptr, device};
  void* const address = memory.get();
  return owned_by_device(std::unique_ptr<Owned>(new Owned{address, bytes, device.index(), std::move(memory)}));
}

}  // namespace ddprun::fake_gpu
