// How much memory the tensors of each device of strategy dp take, where the devices are CPUs and share one memory.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace ddprun::train {

// Counts LibTorch's CPU memory, from construction to stop(), for the thread that allocates it, whichever thread frees
// it: parameters and gradients, outputs kept for backward, what an operation needs for a moment. It does not count what
// libraries such as oneDNN allocate for themselves, nor the loader's batches. One object at a time; made and destroyed
// where no other thread makes tensors.
class DeviceMemory {
 public:
  explicit DeviceMemory(int devices);
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  ~DeviceMemory();

  // What the calling thread asks for from here on is this device's.
  void use(int device);
  // Bytes that the device holds already.
  void add(int device, int64_t bytes);
  // Ends the counting, which costs a lock and a look-up for each tensor. Where no other thread makes tensors.
  void stop();
  // The most bytes that each device held until stop(). Any thread.
  std::vector<int64_t> peaks() const;

  struct Account;

 private:
  std::vector<std::shared_ptr<Account>> accounts_;
};

}  // namespace ddprun::train
