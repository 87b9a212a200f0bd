// The only place that makes a Collective from a tensor.
#pragma once

#include <torch/torch.h>

#include <string>

#include "ddprun/comm_backend.hpp"

namespace ddprun::train {

// Throws Error(failure) for a dtype that no backend supports.
DType dtype_of(const torch::Tensor& tensor);

// The dtype's name in a safetensors file: "F32". Throws Error(failure) if it has none.
std::string safetensors_dtype(const torch::Tensor& tensor);

// A collective in place on the tensor's memory; the tensor keeps owning the memory. On a GPU, it uses the calling
// thread's current stream on that device. Throws Error(failure) unless the tensor is contiguous and on the CPU or a
// CUDA device.
Collective in_place(const torch::Tensor& tensor);

}  // namespace ddprun::train
