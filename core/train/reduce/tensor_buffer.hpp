// The one place where a tensor becomes a Collective.
#pragma once

#include <torch/torch.h>

#include <string>

#include "ddprun/comm_backend.hpp"

namespace ddprun::train {

// Throws Error(failure) for a dtype that no backend moves.
DType dtype_of(const torch::Tensor& tensor);

// The dtype's name in a safetensors file: "F32". Throws Error(failure) for one that has none.
std::string safetensors_dtype(const torch::Tensor& tensor);

// A collective over the tensor's memory in place (the tensor keeps owning it); on a GPU, on the calling thread's current
// stream there. Throws Error(failure) unless the tensor is contiguous, on the CPU or on a CUDA device.
Collective in_place(const torch::Tensor& tensor);

}  // namespace ddprun::train
