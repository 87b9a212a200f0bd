// What a tensor holds, short enough to compare it over ranks and runs.
#pragma once

#include <torch/torch.h>

#include <cstdint>

#include "ddprun/records.hpp"

namespace ddprun::train {

// Of the elements' bytes in logical order, whatever the strides; the same in every run of one build.
uint64_t hash_of(const torch::Tensor& tensor);

// Hash, norm and sketch of a tensor of floating point (record::TensorDigest says what they are), summed in float64.
record::TensorDigest print_of(const torch::Tensor& tensor);

}  // namespace ddprun::train
