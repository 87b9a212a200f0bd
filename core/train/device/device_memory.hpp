// Peak tensor memory of each device of strategy dp if the devices are CPUs, which share one memory.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace ddprun::train {

// Counts LibTorch's CPU allocations from construction to stop(): parameters, gradients, outputs kept for backward, and
// temporaries. An allocation counts for the thread that made it, whichever thread frees it. Memory that libraries such
// as oneDNN allocate for themselves, and the DataLoader's batches, are not counted. Only one object at a time.
// Construct and destroy it while no other thread creates tensors.
class DeviceMemory {
 public:
  explicit DeviceMemory(int devices);
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  ~DeviceMemory();

  // Counts further allocations of the calling thread for this device.
  void use(int device);
  // Adds bytes that the device already holds.
  void add(int device, int64_t bytes);
  // Stops counting, which costs a lock and a look-up per tensor. Call it while no other thread creates tensors.
  void stop();
  // Peak bytes of each device until stop(). Thread-safe.
  std::vector<int64_t> peaks() const;

  struct Account;

 private:
  std::vector<std::shared_ptr<Account>> accounts_;
};

}  // namespace ddprun::train
