// A model's weights, into a file and from one.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <string>

#include "checkpoint/folder.hpp"

namespace ddprun::train {

// Overwrites all parameters and buffers with those of a safetensors file, our own or Python's (which has no checksums).
// Throws Error(usage) unless the file holds each of them, under the name of PyTorch's state_dict, in its shape and
// dtype, and nothing else; one line names the first differences and counts the rest, and the module is as it was.
// Returns the file's metadata.
checkpoint::Metadata load_weights(const torch::nn::Module& module, const std::string& path);

// Commits parameters and buffers under the names of PyTorch's state_dict. Throws as CheckpointFolder::save() does.
void save_weights(const torch::nn::Module& module, checkpoint::CheckpointFolder& folder, int64_t step, int64_t epoch,
                  const checkpoint::Metadata& metadata);

}  // namespace ddprun::train
