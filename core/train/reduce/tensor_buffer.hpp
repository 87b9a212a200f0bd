// The one place where a tensor becomes pointer + count + dtype.
#pragma once

#include <torch/torch.h>

#include <string>

#include "comm/comm_backend.hpp"

namespace ddprun::train {

// Throws Error(failure) for a dtype that no backend moves.
comm::DType dtype_of(const torch::Tensor& tensor);

// The dtype's name in a safetensors file: "F32". Throws Error(failure) for one that has none.
std::string safetensors_dtype(const torch::Tensor& tensor);

// The tensor's memory, which it keeps owning; on a GPU with the calling thread's current stream there. Throws
// Error(failure) unless it is contiguous, on the CPU or on a CUDA device.
comm::Buffer as_buffer(const torch::Tensor& tensor);

}  // namespace ddprun::train
