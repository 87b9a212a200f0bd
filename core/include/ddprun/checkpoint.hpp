// ddprun/checkpoint.hpp: save and load a module, its optimizer and numbers of yours, for programs with a training loop
// of their own.
//
//   ddprun::save_checkpoint("last.safetensors", *net, adam, group, {{"epoch", epoch}});
//   const int epoch = ddprun::load_checkpoint("last.safetensors", *net, adam, group).at("epoch");
//
// A checkpoint is one safetensors file (https://github.com/huggingface/safetensors). It holds the parameters and
// buffers under the names of PyTorch's state_dict, and with an optimizer also its state, as
// "optimizer.<parameter>.exp_avg" and so on, and its learning rates. A file without an optimizer is what
// model.load_state_dict(safetensors.torch.load_file(path)) takes in Python, and safetensors.torch.save_file writes.
// The numbers are in the metadata of the file.
#pragma once

#include <torch/torch.h>

#include <map>
#include <string>

#include "ddprun/group.hpp"

namespace ddprun {

using CheckpointNumbers = std::map<std::string, double>;

// Rank 0 writes the file; the path of the other ranks does not matter. Under its name the file is always complete: it
// is written aside, synced, and renamed, and replaces an older one then. The folder must exist. The other ranks wait,
// even if rank 0 takes longer than the timeout of the group.
//
// The optimizer is an SGD, Adam or AdamW, or a ZeroRedundancyOptimizer of one (the file is the same), and all its
// parameters are the module's. Saves its state and learning rates; other options, such as the momentum, come from its
// constructor.
//
// Collective. On all ranks alike throws Error(failure) if the file cannot be written, and Error(usage) for an optimizer
// with other parameters, or a name that begins with "optimizer" or "ddprun". Not thread-safe.
void save_checkpoint(const std::string& path, const torch::nn::Module& module, const Group& group,
                     const CheckpointNumbers& numbers = {});
void save_checkpoint(const std::string& path, const torch::nn::Module& module, torch::optim::Optimizer& optimizer,
                     const Group& group, const CheckpointNumbers& numbers = {});

// Rank 0 reads the file and sends it to the others, so that they need not share its disk. Overwrites the values of the
// module's parameters and buffers, and the optimizer's state and learning rates; tensor objects stay the same. Without
// an optimizer, the state of one in the file is ignored. Returns all metadata of the file that are numbers.
//
// Collective. On all ranks alike throws Error(usage), which names the file and the tensor, if a tensor is missing, is
// not the module's, or has another shape or dtype; if the file is damaged or does not exist; and if it has no state of
// the optimizer, or that of another kind. The weights are unchanged then. Throws Error(failure) if reading fails. Not
// thread-safe.
CheckpointNumbers load_checkpoint(const std::string& path, torch::nn::Module& module, const Group& group);
CheckpointNumbers load_checkpoint(const std::string& path, torch::nn::Module& module,
                                  torch::optim::Optimizer& optimizer, const Group& group);

}  // namespace ddprun
