#include "train/device/dp_devices.hpp"

#include <ATen/Parallel.h>

#include <utility>

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

}  // namespace ddprun::train
