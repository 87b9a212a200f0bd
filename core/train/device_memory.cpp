#include "train/device_memory.hpp"

#include <c10/core/CPUAllocator.h>

#include <atomic>

namespace ddprun::train {

struct DeviceMemory::Account {
  std::atomic<int64_t> bytes{0};
  std::atomic<int64_t> peak{0};

  void add(int64_t more) {
    const int64_t now = bytes.fetch_add(more, std::memory_order_relaxed) + more;
    int64_t most = peak.load(std::memory_order_relaxed);
    while (now > most && !peak.compare_exchange_weak(most, now, std::memory_order_relaxed)) {
    }
  }
};

namespace {

thread_local std::shared_ptr<DeviceMemory::Account> mine;

// One block of memory, which knows whose it is: another thread may free it, and later than the accounts are read.
struct Block {
  c10::DataPtr memory;
  std::shared_ptr<DeviceMemory::Account> account;
  int64_t bytes;
};

void free_block(void* context) {
  const std::unique_ptr<Block> block(static_cast<Block*>(context));
  block->account->add(-block->bytes);
}

// Never destroyed: tensors remember the allocator that they can grow by.
class CountingAllocator final : public c10::Allocator {
 public:
  explicit CountingAllocator(c10::Allocator& next) : next_(next) {}

  c10::DataPtr allocate(std::size_t size) override {
    c10::DataPtr memory = next_.allocate(size);
    if (mine == nullptr || size == 0) return memory;
    const auto bytes = static_cast<int64_t>(size);
    mine->add(bytes);
    void* data = memory.get();
    const c10::Device device = memory.device();
    return {data, new Block{std::move(memory), mine, bytes}, &free_block, device};
  }

  void copy_data(void* target, const void* source, std::size_t count) const override {
    next_.copy_data(target, source, count);
  }

 private:
  c10::Allocator& next_;
};

c10::Allocator* counting_allocator() {
  static auto* allocator = new CountingAllocator(*c10::GetDefaultCPUAllocator());
  return allocator;
}

}  // namespace

DeviceMemory::DeviceMemory(int devices) {
  for (int device = 0; device < devices; ++device) accounts_.push_back(std::make_shared<Account>());
  c10::SetCPUAllocator(counting_allocator());
}

DeviceMemory::~DeviceMemory() {
  mine = nullptr;
  c10::SetCPUAllocator(c10::GetDefaultCPUAllocator());
}

void DeviceMemory::use(int device) {
  mine = accounts_.at(static_cast<std::size_t>(device));
}

void DeviceMemory::add(int device, int64_t bytes) {
  accounts_.at(static_cast<std::size_t>(device))->add(bytes);
}

std::vector<int64_t> DeviceMemory::peaks() const {
  std::vector<int64_t> peaks;
  for (const auto& account : accounts_) peaks.push_back(account->peak.load(std::memory_order_relaxed));
  return peaks;
}

}  // namespace ddprun::train
