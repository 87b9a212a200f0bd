// The GPU of a rank, and the kernel that runs on it.
#pragma once

#include <string>

#include "driver.hpp"

namespace ddprun::ucx_backend {

// Its primary context is the one that Torch and the CUDA runtime use too.
class Gpu {
 public:
  // `ordinal`: CUDA's device index. Throws CommError.
  explicit Gpu(int ordinal);
  ~Gpu() { driver().release(device_); }
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

// kernel.cu compiled for an architecture ("sm_90"), as the driver loads it; once per process. NVRTC, NVIDIA's compiler
// for kernels as a library, is opened at run time: neither building nor a rank on a CPU needs it. Any thread. Throws
// CommError(CommStatus::unsupported) if there is no NVRTC, or if it does not support this architecture.
const std::string& compiled_kernel(const std::string& architecture);

// kernel.cu and the headers that it includes, as text at build time.
extern const char kKernelText[];
extern const char kCommPluginText[];  // ddprun/plugin/comm_plugin.h
extern const char kExportText[];      // ddprun/plugin/export.h
extern const char kOptionSpecText[];  // ddprun/plugin/option_spec.h
extern const char kFloat16Text[];     // reduction/float16.hpp

// The name of its only kernel.
inline constexpr char kKernel[] = "ddprun_reduce";

}  // namespace ddprun::ucx_backend
