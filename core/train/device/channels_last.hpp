// The order in memory of pictures, and of the weights that are laid over them.
#pragma once

#include <torch/torch.h>

namespace ddprun::train {

// Lays the parameters and buffers of four dimensions out with the channels innermost, as module.to(memory_format =
// torch.channels_last) does in Python. Values stay, and so do the tensors, for whoever holds them.
void use_channels_last(torch::nn::Module& module);

// A batch of pictures [batch, channels, height, width], laid out likewise; anything else as it is.
torch::Tensor with_channels_last(const torch::Tensor& batch);

}  // namespace ddprun::train
