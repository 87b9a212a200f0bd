// CUDA under LibTorch, for the runs that ask for it: LibTorch's CPU libraries are what ddprun is linked with.
#pragma once

#include <torch/torch.h>

#include <map>
#include <string>

namespace ddprun::train {

// Asks the driver for GPUs, then loads libtorch_cuda.so, once. Before anything else that asks LibTorch whether CUDA is
// there (torch::manual_seed does): the first answer counts for the whole process. Any thread. Throws Error(plugin), one
// line that says what is missing and what to do.
void load_cuda();

// Where a run's tensors are to be: "cpu"; or "cuda", for which CUDA is loaded and GPU `index`, by CUDA's numbers, is
// made the calling thread's current device before anything else touches CUDA, so that no context is made on another.
// Throws as load_cuda() does.
torch::Device choose_device(const std::string& device, int index);

// Makes it the calling thread's current device. Nothing for the CPU.
void make_current(torch::Device device);

// "cpu", or "cuda:0 (NVIDIA H200)".
std::string device_text(torch::Device device);

// What a run's record is to say of this machine's CUDA: the versions of driver, runtime and cuDNN, and each GPU's name.
// After load_cuda().
std::map<std::string, std::string> cuda_environment();

// What LibTorch threw, as one line: without its advice on finding faults of kernels. To a GPU without memory it adds
// what to try.
std::string words_of(const c10::Error& error);

}  // namespace ddprun::train
