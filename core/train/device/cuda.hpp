// LibTorch on GPUs: loads CUDA when a run needs it, and reports the memory that the allocator uses. ddprun itself is
// linked only with LibTorch's CPU libraries.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <map>
#include <string>

namespace ddprun::train {

// Checks the driver for GPUs, then loads libtorch_cuda.so, once. Must be called before any other LibTorch call that
// asks whether CUDA is available (torch::manual_seed does), because LibTorch caches the first answer for the process.
// Thread-safe. Throws Error(plugin): one line that says what is missing and what to do.
void load_cuda();

// The device of a run's tensors: "cpu"; or "cuda", which loads CUDA and makes GPU `index` (CUDA device index) the
// calling thread's current device. It does this before anything else uses CUDA, so that no other GPU gets a context.
// Throws as load_cuda() does.
torch::Device choose_device(const std::string& device, int index);

// Makes the device the calling thread's current device. Does nothing for the CPU.
void make_current(torch::Device device);

// "cpu", or "cuda:0 (NVIDIA H200)".
std::string device_text(torch::Device device);

// The CUDA environment for a run's record: the versions of driver, runtime and cuDNN, and each GPU's name. Call it
// after load_cuda().
std::map<std::string, std::string> cuda_environment();

// The message of a LibTorch exception as one line, without its advice on debugging kernels. If a GPU is out of memory,
// it also says what to try.
std::string error_message(const c10::Error& error);

// "out of memory: a tensor of 1644167168 bytes cannot be allocated", if this is what the CPU's allocator wrote into an
// exception's text; otherwise "".
std::string refused_tensor(const std::string& text);

// Peaks since reset_peak_memory(), in bytes, of this process; -1 with a LibTorch before 2.9, which does not report
// them.
struct GpuMemory {
  int64_t allocated = -1;  // by tensors
  int64_t reserved = -1;   // reserved on the GPU, including memory cached for later tensors
};

GpuMemory peak_memory(torch::Device gpu);
void reset_peak_memory(torch::Device gpu);

}  // namespace ddprun::train
