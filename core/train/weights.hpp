// A model's weights from a file.
#pragma once

#include <torch/torch.h>

#include <string>

namespace ddprun::train {

// Overwrites all parameters and buffers with those of a safetensors file, our own or Python's (which has no checksums).
// Throws Error(usage) unless the file holds each of them, under the name of PyTorch's state_dict, in its shape and
// dtype, and nothing else; one line names the first differences and counts the rest, and the module is as it was.
void load_weights(const torch::nn::Module& module, const std::string& path);

}  // namespace ddprun::train
