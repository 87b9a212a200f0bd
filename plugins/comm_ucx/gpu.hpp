// The GPU of a rank. Its primary context is the one that Torch and the CUDA runtime use too.
#pragma once

#include <string>

#include "driver.hpp"

namespace ddprun::ucx_backend {

class Gpu {
 public:
  // `ordinal` as CUDA counts. Throws CommError.
  explicit Gpu(int ordinal);
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  void* context() const noexcept { return context_; }
  // As the compiler of kernels calls it: "sm_90".
  std::string architecture() const;

 private:
  CudaDevice device_ = 0;
  void* context_ = nullptr;
};

// The GPU is the calling thread's current one for as long as this lives; null: nothing happens. UCX looks at the
// current one whenever it may come by memory of a GPU: when a worker is made, moves messages, sleeps or ends.
class OnGpu {
 public:
  // Where the driver refuses, whatever uses the GPU next fails.
  explicit OnGpu(const Gpu* gpu) noexcept;
  ~OnGpu();
  OnGpu(const OnGpu&) = delete;
  OnGpu& operator=(const OnGpu&) = delete;

 private:
  const bool entered_;
};

}  // namespace ddprun::ucx_backend
