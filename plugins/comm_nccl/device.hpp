// The machine: which NCCL, CUDA runtime and driver this process has, and whether the GPU that was asked for is there.
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "ddprun/plugin/comm_plugin.hpp"

namespace ddprun::nccl_backend {

struct Device {
  int ordinal = 0;
  std::string bus;       // PCI address, which names a GPU of a host whatever its ordinal is
  std::string versions;  // of all that takes part, for the log
};

// Throws CommError(CommStatus::unsupported) that says which of library, driver and device is missing or does not fit:
// another major version than the plugin was built with, or two copies in one process.
Device find_device(const Host& host);

// The calling thread's current device, for as long as this lives.
class OnDevice {
 public:
  explicit OnDevice(int ordinal) noexcept;
  ~OnDevice();
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  int before_ = -1;
  int ordinal_;
};

}  // namespace ddprun::nccl_backend
