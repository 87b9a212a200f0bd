// A digest of a tensor's values, short enough to compare tensors over ranks and runs.
#pragma once

#include <torch/torch.h>

#include <cstdint>

#include "ddprun/records.hpp"

namespace ddprun::train {

// Hash of the elements' bytes in logical order, independent of strides. The same in every run of one build.
uint64_t hash_of(const torch::Tensor& tensor);

// Hash, norm and sketch (see record::TensorDigest) of a floating-point tensor, summed in float64.
record::TensorDigest print_of(const torch::Tensor& tensor);

}  // namespace ddprun::train
