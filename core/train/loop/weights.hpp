// Saves and loads a model's weights.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <string>

#include "checkpoint/folder.hpp"

namespace ddprun::train {

// Overwrites all parameters and buffers with those of a safetensors file, written by ddprun or by Python (which writes
// no checksums). Throws Error(usage) unless the file holds exactly these tensors, under the names of PyTorch's
// state_dict, with their shapes and dtypes. The message names the first differences and counts the rest; the module is
// unchanged. Returns the file's metadata.
checkpoint::Metadata load_weights(const torch::nn::Module& module, const std::string& path);

// Commits parameters and buffers under the names of PyTorch's state_dict. Throws as CheckpointFolder::save() does.
void save_weights(const torch::nn::Module& module, checkpoint::CheckpointFolder& folder, int64_t step, int64_t epoch,
                  const checkpoint::Metadata& metadata);

}  // namespace ddprun::train
