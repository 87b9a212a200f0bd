// cuda: NVIDIA's driver, management library and runtime. Each is loaded on first use and never linked. Torch-free. This
// header: the driver's list of GPUs, and the GPU of each rank.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ddprun::cuda {

// The CUDA version of LibTorch, NCCL and the runtime of this build, in the driver's form: 1000 * major + 10 * minor.
inline constexpr int kVersion = 13000;

struct Gpu {
  std::string name;          // "NVIDIA H200"
  std::string bus_id;        // PCI address, "0000:1b:00.0"; NVML identifies the GPU by it
  int64_t memory_bytes = 0;  // total memory
  int major = 0;             // compute capability
  int minor = 0;
};

// Whether NVIDIA's kernel driver is installed. Loads nothing. Thread-safe.
bool driver_installed();

// The GPUs of this process in CUDA's order, after CUDA_VISIBLE_DEVICES; at least one. The first call loads and
// initialises libcuda.so.1, but creates no context on any GPU. Thread-safe. A child forked afterwards cannot use CUDA
// before it calls exec. Throws Error(plugin), one line: no driver, a driver older than kVersion, no device, or the
// driver's message.
const std::vector<Gpu>& gpus();

// The CUDA version that the driver supports, "13.0". Throws as gpus() does.
std::string driver_version();

// The CUDA device index of a rank, one of `local_size` on this node: devices[local_rank], or local_rank if
// launch.devices is empty. Throws Error(plugin) if there is no such GPU, and as gpus() does.
int device_of(const std::vector<int64_t>& devices, int local_rank, int local_size);

}  // namespace ddprun::cuda
