// cuda: NVIDIA's driver, management library and runtime, each loaded when it is first asked for and never linked.
// Torch-free. Of the driver: which GPUs there are, and which one is whose.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ddprun::cuda {

// The CUDA that LibTorch, NCCL and the runtime of this build are for, as the driver counts: 1000 * major + 10 * minor.
inline constexpr int kVersion = 13000;

struct Gpu {
  std::string name;          // "NVIDIA H200"
  std::string bus_id;        // of PCI, "0000:1b:00.0": by it NVML knows the same GPU
  int64_t memory_bytes = 0;  // all of it, whoever uses it
  int major = 0;             // compute capability
  int minor = 0;
};

// Whether the kernel has NVIDIA's driver. Loads nothing; any thread.
bool driver_installed();

// The GPUs of this process in CUDA's order, so that CUDA_VISIBLE_DEVICES applies; at least one. The first call loads
// libcuda.so.1 and initialises it, but makes no context on any GPU. Any thread. A child that was forked afterwards and
// not replaced (exec) cannot use CUDA. Throws Error(plugin), one line: no driver, a driver older than kVersion, no
// device, or what the driver says.
const std::vector<Gpu>& gpus();

// The version of CUDA that the driver is for, "13.0". Throws as gpus() does.
std::string driver_version();

// The CUDA ordinal of a rank, one of `local_size` on this node: devices[local_rank], or local_rank where launch.devices
// is empty. Throws Error(plugin) where there is no such GPU, and as gpus() does.
int device_of(const std::vector<int64_t>& devices, int local_rank, int local_size);

}  // namespace ddprun::cuda
