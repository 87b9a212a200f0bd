// The NCCL, CUDA runtime and driver of this process, their errors as CommError with what to try first, and the GPU that
// was requested.
#pragma once

#include <cuda_runtime.h>
#include <nccl.h>

#include <chrono>
#include <string>

#include "ddprun/plugin/comm_plugin.hpp"

namespace ddprun::nccl_backend {

struct Device {
  int ordinal = 0;
  std::string bus;       // PCI address, which identifies a GPU of a host independent of its device index
  std::string versions;  // of library, runtime and driver, for the log
};

// Throws CommError(CommStatus::unsupported) that says which of library, driver and device is missing or unsuitable:
// another major version than the plugin was built with, or two copies in one process.
Device find_device(const Host& host);

// The calling thread's current device while this object lives.
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

// The meaning of a result other than ncclSuccess. `what`: the call, for the message; `detail`: NCCL's last error line,
// or "".
CommError failure_of(const std::string& what, ncclResult_t result, const std::string& detail);
CommError failure_of(const std::string& what, cudaError_t result);

// The error for a `what` that has not finished in time.
CommError timeout_of(const std::string& what, std::chrono::milliseconds limit);

// Throws failure_of() unless the call succeeded.
void check(const std::string& what, ncclResult_t result);
void check(const char* what, cudaError_t result);

}  // namespace ddprun::nccl_backend
