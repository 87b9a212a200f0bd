// The GPU of a rank. Its primary context is the one that Torch and the CUDA runtime use too.
#pragma once

#include <string>

#include "driver.hpp"

namespace ddprun::ucx_backend {

class Gpu {
 public:
  // `ordinal`: CUDA's device index. Throws CommError.
  explicit Gpu(int ordinal);
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  void* context() const noexcept { return context_; }
  // The compiler's name of the architecture: "sm_90".
  std::string architecture() const;

 private:
  CudaDevice device_ = 0;
  void* context_ = nullptr;
};

// Makes the GPU the calling thread's current device while this object lives; null: does nothing. UCX reads the current
// device whenever GPU memory may be involved: when a worker is created, moves messages, sleeps or ends.
class OnGpu {
 public:
  // If the driver refuses, the next use of the GPU fails.
  explicit OnGpu(const Gpu* gpu) noexcept;
  ~OnGpu();
  OnGpu(const OnGpu&) = delete;
  OnGpu& operator=(const OnGpu&) = delete;

 private:
  const bool entered_;
};

}  // namespace ddprun::ucx_backend
