// The channels-last memory format for images and for the weights that are applied to them.
#pragma once

#include <torch/torch.h>

namespace ddprun::train {

// Gives all 4-dimensional parameters and buffers the channels-last format, as module.to(memory_format =
// torch.channels_last) does in Python. Values and tensor objects stay the same, so existing references remain valid.
void use_channels_last(torch::nn::Module& module);

// An image batch [batch, channels, height, width] in the channels-last format; any other batch unchanged.
torch::Tensor with_channels_last(const torch::Tensor& batch);

}  // namespace ddprun::train
