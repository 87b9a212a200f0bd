// A model's state into a checkpoint folder.
#pragma once

#include <torch/torch.h>

#include <memory>

#include "checkpoint/folder.hpp"
#include "train/trainer.hpp"

namespace ddprun::train {

// Saves parameters and buffers under the names of PyTorch's state_dict. Both must outlive it.
std::unique_ptr<Checkpointer> model_checkpointer(const torch::nn::Module& module, checkpoint::CheckpointFolder& folder,
                                                 checkpoint::Metadata metadata);

}  // namespace ddprun::train
