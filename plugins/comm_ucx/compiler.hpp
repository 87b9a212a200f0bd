// NVRTC, NVIDIA's compiler for kernels as a library: opened at run time, so that neither building nor a rank on a CPU
// needs it.
#pragma once

#include <string>

namespace ddprun::ucx_backend {

// kernel.cu compiled for an architecture ("sm_90"), as the driver loads it; once per process. Any thread. Throws
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
