// A module's parameters with their names, in the order in which PyTorch lists them, and their memory format.
#pragma once

#include <torch/torch.h>

#include <functional>
#include <string>
#include <vector>

namespace ddprun::train {

struct NamedTensor {
  std::string name;
  torch::Tensor tensor;
};

// What a model has now, whether it is a torch::nn::Module, a torch::jit::Module or a list. Tensors that are not defined
// are left out.
struct ModelTensors {
  std::function<std::vector<NamedTensor>()> parameters, buffers;
};
ModelTensors tensors_of(const torch::nn::Module& module);  // which must outlive the result

// The parameters that require a gradient, as a Reducer and an optimizer use them. A parameter shared by several modules
// (tied weights) appears once, under its first name.
std::vector<NamedTensor> trainable_parameters(const ModelTensors& model);
inline std::vector<NamedTensor> trainable_parameters(const torch::nn::Module& module) {
  return trainable_parameters(tensors_of(module));
}
// All parameters and buffers: what a checkpoint holds (PyTorch's state_dict).
std::vector<NamedTensor> state(const ModelTensors& model);
inline std::vector<NamedTensor> state(const torch::nn::Module& module) {
  return state(tensors_of(module));
}

// Gives all 4-dimensional parameters and buffers the channels-last format, as module.to(memory_format =
// torch.channels_last) does in Python. Values and tensor objects stay the same, so existing references remain valid.
void use_channels_last(torch::nn::Module& module);

// An image batch [batch, channels, height, width] in the channels-last format; any other batch unchanged.
torch::Tensor with_channels_last(const torch::Tensor& batch);

}  // namespace ddprun::train
