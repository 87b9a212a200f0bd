// NVRTC, NVIDIA's compiler for kernels as a library: opened at run time, so that neither building nor a rank on a CPU
// needs it.
#pragma once

#include <string>

namespace ddprun::ucx_backend {

// kernel.cu for an architecture ("sm_90"), as the driver loads it; compiled once in a process. Any thread. Throws
// CommError(CommStatus::unsupported) where there is no NVRTC, or none that knows this architecture.
const std::string& compiled_kernel(const std::string& architecture);

// The name of the one kernel in it.
inline constexpr char kKernel[] = "ddprun_reduce";

}  // namespace ddprun::ucx_backend
