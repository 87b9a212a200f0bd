#include "train/device/dp_devices.hpp"

#include <ATen/Parallel.h>
#include <c10/core/CPUAllocator.h>

#include <array>
#include <atomic>
#include <mutex>
#include <unordered_map>

namespace ddprun::train {

DeviceThreads::DeviceThreads(int devices, const std::function<void(int device)>& begin) {
  for (int device = 1; device < devices; ++device) {
    Other& other = others_.emplace_back();
    other.thread = std::thread([this, device, &other, &begin] { live(device, other, begin); });
  }
  for (std::size_t i = 0; i < others_.size(); ++i) done_.acquire();
  begin(0);
}

DeviceThreads::~DeviceThreads() {
  work_ = nullptr;
  for (Other& other : others_) other.start.release();
  for (Other& other : others_) other.thread.join();
}

void DeviceThreads::live(int device, Other& self, const std::function<void(int device)>& begin) {
  // The number of compute threads is set per thread, so a new thread must set it.
  at::init_num_threads();
  begin(device);
  done_.release();
  while (true) {
    self.start.acquire();
    if (work_ == nullptr) return;
    const at::ThreadLocalStateGuard as_caller(*state_);
    try {
      (*work_)(device);
    } catch (...) {
      self.fault = std::current_exception();
    }
    done_.release();
  }
}

void DeviceThreads::run(int count, const std::function<void(int device)>& work) {
  const at::ThreadLocalState state;
  work_ = &work;
  state_ = &state;
  const auto others = static_cast<std::size_t>(count - 1);
  for (std::size_t i = 0; i < others; ++i) others_[i].start.release();
  std::exception_ptr first;
  try {
    work(0);
  } catch (...) {
    first = std::current_exception();
  }
  for (std::size_t i = 0; i < others; ++i) done_.acquire();
  for (Other& other : others_) {
    const std::exception_ptr fault = std::exchange(other.fault, nullptr);
    if (!first) first = fault;
  }
  if (first) std::rethrow_exception(first);
}

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

// The owner of each block of memory. Looked up by address, because LibTorch frees some blocks (oneDNN's) by address
// only. Divided into many parts, so that the devices' threads do not wait for one another.
class Owners {
 public:
  void add(void* block, std::shared_ptr<DeviceMemory::Account> account, int64_t bytes) {
    account->add(bytes);
    Part& part = part_of(block);
    const std::scoped_lock lock(part.mutex);
    part.blocks.insert_or_assign(block, Owned{std::move(account), bytes});
  }

  // An unknown block was allocated before the counting began.
  void remove(void* block) {
    Part& part = part_of(block);
    const std::scoped_lock lock(part.mutex);
    const auto found = part.blocks.find(block);
    if (found == part.blocks.end()) return;
    found->second.account->add(-found->second.bytes);
    part.blocks.erase(found);
  }

  void clear() {
    for (Part& part : parts_) {
      const std::scoped_lock lock(part.mutex);
      part.blocks.clear();
    }
  }

 private:
  struct Owned {
    std::shared_ptr<DeviceMemory::Account> account;
    int64_t bytes;
  };
  struct Part {
    std::mutex mutex;
    std::unordered_map<void*, Owned> blocks;
  };

  Part& part_of(void* block) {
    const auto address = reinterpret_cast<std::uintptr_t>(block);
    return parts_[(address >> 6 ^ address >> 12) % parts_.size()];
  }

  std::array<Part, 64> parts_;
};

// Never destroyed: tensors may live as long as the process.
Owners& owners() {
  static auto* all = new Owners;
  return *all;
}

void free_block(void* block) {
  owners().remove(block);
  c10::GetDefaultCPUAllocator()->raw_deallocate(block);
}

// Counts the allocations of LibTorch's own allocator. Each of the two can free the other's blocks, so they can be
// exchanged at any time.
class CountingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t size) override {
    c10::DataPtr memory = c10::GetDefaultCPUAllocator()->allocate(size);
    const c10::Device device = memory.device();
    void* block = memory.release_context();
    if (mine != nullptr && block != nullptr) owners().add(block, mine, static_cast<int64_t>(size));
    return {block, block, &free_block, device};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_block; }
  void copy_data(void* target, const void* source, std::size_t count) const override {
    default_copy_data(target, source, count);
  }
};

// Never destroyed: tensors keep a pointer to the allocator for resizing.
c10::Allocator* counting_allocator() {
  static auto* allocator = new CountingAllocator;
  return allocator;
}

}  // namespace

DeviceMemory::DeviceMemory(int devices) {
  for (int device = 0; device < devices; ++device) accounts_.push_back(std::make_shared<Account>());
  c10::SetCPUAllocator(counting_allocator());
}

DeviceMemory::~DeviceMemory() {
  stop();
  mine = nullptr;
  owners().clear();
}

void DeviceMemory::stop() {
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
