// ddprun/checkpoint.hpp: save and load a module, its optimizer and numbers of yours, for programs with a training loop
// of their own.
//
// A checkpoint is one safetensors file (https://github.com/huggingface/safetensors). It holds the parameters and
// buffers under the names of PyTorch's state_dict, and with an optimizer also its state, as
// "optimizer.<parameter>.exp_avg" and so on, and its learning rates. A file without an optimizer is what
// model.load_state_dict(safetensors.torch.load_file(path)) takes in Python, and safetensors.torch.save_file writes.
// The numbers are in the metadata of the file. They are doubles: whole numbers are exact up to 2^53.
#pragma once

#include <torch/torch.h>

#include <map>
#include <string>

#include "ddprun/group.hpp"

namespace ddprun {

using CheckpointNumbers = std::map<std::string, double>;

// Rank 0 writes the file, with its own numbers; path and numbers of the other ranks do not matter. It is written to a
// temporary file, synced, and renamed to `path`: a reader sees the old file or the complete new one. The folder must
// exist. The other ranks wait up to ten timeouts of the group. After that they throw Error(peer).
//
// The optimizer is an SGD, Adam, AdamW, RMSprop or Adagrad, or a ZeroRedundancyOptimizer of one of them (the file is
// the same), and all its parameters are the module's. Saves its state and learning rates; other options, such as the
// momentum, come from its constructor.
//
// Collective. Throws on all ranks alike:
//   Error(failure)  the file cannot be written, or the optimizer has state and is of another kind
//   Error(usage)    the optimizer has other parameters
//   Error(usage)    the name of a number begins with "optimizer" or "ddprun", or is "format"
//   Error(usage)    with an optimizer, the name of a parameter or buffer begins with "optimizer."
// Not thread-safe: see Group.
void save_checkpoint(const std::string& path, const torch::nn::Module& module, const Group& group,
                     const CheckpointNumbers& numbers = {});
void save_checkpoint(const std::string& path, const torch::nn::Module& module, torch::optim::Optimizer& optimizer,
                     const Group& group, const CheckpointNumbers& numbers = {});

// Rank 0 reads the file and sends it to the others, so that they need no access to its disk. Overwrites the values of
// the module's parameters and buffers, and the optimizer's state and learning rates; tensor objects stay the same.
// Without an optimizer, the state of one in the file is ignored. Returns all metadata of the file that are numbers.
//
// Collective. Throws on all ranks alike:
//   Error(usage)    a tensor is missing, is not the module's, or has another shape or dtype; the error names it
//   Error(usage)    the file is damaged or does not exist
//   Error(usage)    the file has no state of the optimizer, or that of another kind
//   Error(failure)  reading fails, or the optimizer is of another kind
// Then the weights are unchanged. The optimizer may have changed if the error is that of another rank. Not thread-safe:
// see Group.
CheckpointNumbers load_checkpoint(const std::string& path, torch::nn::Module& module, const Group& group);
CheckpointNumbers load_checkpoint(const std::string& path, torch::nn::Module& module,
                                  torch::optim::Optimizer& optimizer, const Group& group);

}  // namespace ddprun
