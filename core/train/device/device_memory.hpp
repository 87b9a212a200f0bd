// How much memory the tensors of each device of strategy dp take, where the devices are CPUs and share one memory.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace ddprun::train {

// While it stands, LibTorch's CPU memory is counted by the thread that asks for it, whoever frees it: parameters and
// gradients, outputs kept for backward, what an operation needs for a moment. Not what libraries such as oneDNN take
// for themselves, nor the loader's batches. One at a time; made and destroyed where no other thread makes tensors.
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
  // The most bytes that each device ever held. Any thread.
  std::vector<int64_t> peaks() const;

  struct Account;

 private:
  std::vector<std::shared_ptr<Account>> accounts_;
};

}  // namespace ddprun::train
