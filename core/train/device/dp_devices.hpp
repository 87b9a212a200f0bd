// The devices of strategy dp: one thread per device.
#pragma once

#include <deque>
#include <functional>

#include "train/device/worker_thread.hpp"

namespace ddprun::train {

// One thread per device; a CPU device has its own team of compute threads.
// Device 0 is the thread that constructs this object; each other device is a thread that runs until the destructor.
// Every device has as many compute threads as torch::set_num_threads was last given. Only the constructing thread may
// call.
class DeviceThreads {
 public:
  // Calls begin(device) once on each device's thread, for device 0 last. It must not throw.
  DeviceThreads(int devices, const std::function<void(int device)>& begin);

  int devices() const { return static_cast<int>(others_.size()) + 1; }
  // Calls work(device) on each of the first `count` devices in parallel, with the caller's grad mode and autocast, and
  // waits for all of them. Then throws the exception of the first device that failed. run() may be called again after
  // that.
  void run(int count, const std::function<void(int device)>& work);

 private:
  std::deque<WorkerThread> others_;
};

}  // namespace ddprun::train
