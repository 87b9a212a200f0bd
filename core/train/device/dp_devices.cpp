#include "train/device/dp_devices.hpp"

#include <ATen/Parallel.h>
#include <ATen/ThreadLocalState.h>

#include <exception>
#include <vector>

namespace ddprun::train {

DeviceThreads::DeviceThreads(int devices, const std::function<void(int device)>& begin) {
  for (int device = 1; device < devices; ++device) {
    others_.emplace_back().submit([&begin, device] {
      at::init_num_threads();  // the number of compute threads is set per thread
      begin(device);
    });
  }
  for (WorkerThread& other : others_) other.drain();
  begin(0);
}

void DeviceThreads::run(int count, const std::function<void(int device)>& work) {
  const at::ThreadLocalState state;
  std::vector<std::exception_ptr> faults(static_cast<std::size_t>(count));
  const auto work_on = [&](int device) {
    try {
      work(device);
    } catch (...) {
      faults[static_cast<std::size_t>(device)] = std::current_exception();
    }
  };
  for (int device = 1; device < count; ++device) {
    others_[static_cast<std::size_t>(device - 1)].submit([&, device] {
      const at::ThreadLocalStateGuard as_caller(state);
      work_on(device);
    });
  }
  work_on(0);
  for (WorkerThread& other : others_) other.drain();
  for (const std::exception_ptr& fault : faults) {
    if (fault) std::rethrow_exception(fault);
  }
}

}  // namespace ddprun::train
