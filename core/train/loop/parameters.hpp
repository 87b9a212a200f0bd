// A module's parameters with their names, in the order in which PyTorch lists them, and their memory format.
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

// Gives all 4-dimensional parameters and buffers the channels-last format, as module.to(memory_format =
// torch.channels_last) does in Python. Values and tensor objects stay the same, so existing references remain valid.
void use_channels_last(torch::nn::Module& module);

// An image batch [batch, channels, height, width] in the channels-last format; any other batch unchanged.
torch::Tensor with_channels_last(const torch::Tensor& batch);

}  // namespace ddprun::train
