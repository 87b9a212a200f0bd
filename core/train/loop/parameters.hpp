// A module's parameters under their names, in the order in which PyTorch lists them.
#pragma once

#include <torch/torch.h>

#include <string>
#include <vector>

namespace ddprun::train {

struct NamedTensor {
  std::string name;
  torch::Tensor tensor;
};

// Those that require a gradient, one that several modules share (tied weights) once, under its first name: what a
// Reducer and an optimizer see.
std::vector<NamedTensor> trainable_parameters(const torch::nn::Module& module);
// All parameters and buffers: what a checkpoint holds (PyTorch's state_dict).
std::vector<NamedTensor> state(const torch::nn::Module& module);
// The buffers alone (BatchNorm's running statistics).
std::vector<NamedTensor> buffers(const torch::nn::Module& module);

}  // namespace ddprun::train
