// Page-locked host memory, and the hooks with which Torch queries CUDA.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/CachingHostAllocator.h>
#include <ATen/detail/CUDAHooksInterface.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <vector>

#include "torch_streams.hpp"

namespace ddprun::fake_gpu {
namespace {

struct PageLocked {
  std::mutex mutex;
  std::map<std::uintptr_t, std::size_t> blocks;  // first byte, bytes
};

PageLocked& page_locked() {
  static auto* const one = new PageLocked;
  return *one;
}

void free_page_locked(void* memory) {
  {
    const std::lock_guard lock(page_locked().mutex);
    page_locked().blocks.erase(reinterpret_cast<std::uintptr_t>(memory));
  }
  std::free(memory);
}

class HostMemory final : public at::HostAllocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    if (bytes == 0) return {nullptr, c10::kCPU};
    constexpr std::size_t kPage = 4096;
    void* const memory = std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage);
    const std::lock_guard lock(page_locked().mutex);
    page_locked().blocks[reinterpret_cast<std::uintptr_t>(memory)] = bytes;
    return {memory, memory, &free_page_locked, c10::kCPU};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_page_locked; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }
  // A copy in progress keeps its memory alive: torch_copy.cpp.
  bool record_event(void*, void*, c10::Stream) override { return true; }
  void empty_cache() override {}
  at::HostStats get_stats() override { return {}; }
  void reset_accumulated_stats() override {}
  void reset_peak_stats() override {}
};

HostMemory& host_memory() {
  static auto* const one = new HostMemory;
  return *one;
}

const bool registered = [] {
  at::setHostAllocator(c10::kCUDA, &host_memory());
  return true;
}();

}  // namespace

bool is_page_locked(const void* memory) {
  const std::lock_guard lock(page_locked().mutex);
  const auto& blocks = page_locked().blocks;
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  const auto after = blocks.upper_bound(address);
  return after != blocks.begin() && std::prev(after)->first + std::prev(after)->second > address;
}

}  // namespace ddprun::fake_gpu

namespace at::detail {

using namespace ddprun;

// The class's name in the registry. Each device has its own generator, with the CPU generator's sequence.
struct CUDAHooks final : CUDAHooksInterface {
  explicit CUDAHooks(CUDAHooksArgs) {
    for (int device = 0; device < fake_gpu::device_count(); ++device) generators_.push_back(createCPUGenerator());
  }

  void init() const override {}
  bool hasCUDA() const override { return fake_gpu::device_count() > 0; }
  bool hasCUDART() const override { return true; }
  long versionCUDART() const override { return 13000; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return hasCUDA(); }
  bool hasPrimaryContext(DeviceIndex) const override { return true; }

  DeviceIndex deviceCount() const override { return static_cast<DeviceIndex>(fake_gpu::device_count()); }
  int getNumGPUs() const override { return fake_gpu::device_count(); }
  DeviceIndex current_device() const override { return static_cast<DeviceIndex>(fake_gpu::current_device()); }
  DeviceIndex getCurrentDevice() const override { return current_device(); }
  void setCurrentDevice(DeviceIndex device) const override { guard().setDevice({kCUDA, device}); }
  DeviceIndex exchangeDevice(DeviceIndex device) const override {
    return guard().exchangeDevice({kCUDA, device}).index();
  }
  DeviceIndex maybeExchangeDevice(DeviceIndex device) const override { return exchangeDevice(device); }
  void deviceSynchronize(DeviceIndex device) const override { guard().synchronizeDevice(device); }
  Device getDeviceFromPtr(void*) const override { return {kCUDA, current_device()}; }

  bool isPinnedPtr(const void* memory) const override { return fake_gpu::is_page_locked(memory); }
  Allocator* getPinnedMemoryAllocator() const override { return &fake_gpu::host_memory(); }
  Allocator* getCUDADeviceAllocator() const override { return c10::GetAllocator(kCUDA); }

  const Generator& getDefaultGenerator(DeviceIndex device) const override {
    return generators_.at(static_cast<std::size_t>(device < 0 ? current_device() : device));
  }
  Generator getNewGenerator(DeviceIndex) const override { return createCPUGenerator(); }

 private:
  static const c10::impl::DeviceGuardImplInterface& guard() { return *c10::impl::getDeviceGuardImpl(kCUDA); }

  std::vector<Generator> generators_;
};

REGISTER_CUDA_HOOKS(CUDAHooks)

}  // namespace at::detail
