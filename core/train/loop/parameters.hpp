// A module's parameters with their names, in the order in which PyTorch lists them.
#pragma once

#include <torch/torch.h>

#include <string>
#include <vector>

namespace ddprun::train {

struct NamedTensor {
  std::string name;
  torch::Tensor tensor;
};

// The parameters that require a gradient, as a Reducer and an optimizer use them. A parameter shared by several modules
// (tied weights) appears once, under its first name.
std::vector<NamedTensor> trainable_parameters(const torch::nn::Module& module);
// All parameters and buffers: what a checkpoint holds (PyTorch's state_dict).
std::vector<NamedTensor> state(const torch::nn::Module& module);
// Only the buffers (BatchNorm's running statistics).
std::vector<NamedTensor> buffers(const torch::nn::Module& module);

}  // namespace ddprun::train
