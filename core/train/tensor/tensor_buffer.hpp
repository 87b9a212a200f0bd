// Tensors as buffers of collectives, and their digests.
#pragma once

#include <torch/torch.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "ddprun/collective.hpp"
#include "ddprun/records.hpp"

namespace ddprun::train {

// Backends know no complex numbers: a complex element is two, its real and its imaginary part. The dtype is that of the
// parts. dtype_of throws Error(failure) for a dtype that no backend supports.
DType dtype_of(const torch::Tensor& tensor);
std::size_t count_of(const torch::Tensor& tensor);

// The dtype's name in a safetensors file: "F32". Throws Error(failure) if it has none.
std::string safetensors_dtype(const torch::Tensor& tensor);

// A collective in place on the tensor's memory; the tensor keeps owning the memory. On a GPU, it uses the calling
// thread's current stream on that device. Throws Error(failure) unless the tensor is contiguous and on the CPU or a
// CUDA device.
Collective in_place(const torch::Tensor& tensor);
// The same from one tensor to another of the same dtype and device. The count is that of `send`.
Collective from_to(const torch::Tensor& send, const torch::Tensor& recv);

// Hash of the elements' bytes in logical order, independent of strides. The same in every run of one build.
uint64_t hash_of(const torch::Tensor& tensor);

// Hash, norm and sketch (see record::TensorDigest) of a floating-point or complex tensor, summed in float64.
record::TensorDigest digest_of(const torch::Tensor& tensor);

}  // namespace ddprun::train
