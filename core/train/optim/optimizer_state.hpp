// The state of an optimizer as named tensors.
#pragma once

#include <torch/torch.h>

#include <vector>

#include "checkpoint/safetensors.hpp"
#include "train/tensor/parameters.hpp"

namespace ddprun::train {

// SGD: "<parameter>.momentum_buffer"; Adam and AdamW: "<parameter>.exp_avg", ".exp_avg_sq", ".step" (int64, a
// scalar) and, with amsgrad, ".max_exp_avg_sq"; RMSprop, Adagrad and LBFGS likewise under PyTorch's names, LBFGS for
// the first parameter, with ".old_dirs.0" and so on. State that does not exist yet, before the first step or without
// momentum, is left out. The tensors share the optimizer's memory. `parameters` are the optimizer's parameters with
// their names. Throws Error(failure) for an optimizer of another kind.
std::vector<NamedTensor> optimizer_state(torch::optim::Optimizer& optimizer,
                                         const std::vector<NamedTensor>& parameters);

// Restores such a state from the tensors that the file holds under `prefix` and those names. A parameter without
// tensors in the file has no state afterwards. Throws Error(usage) that names file and tensor if a shape or dtype is
// wrong, a part is missing, or a tensor under the prefix is of another optimizer or another module; the optimizer is
// unchanged then.
void load_optimizer_state(torch::optim::Optimizer& optimizer, const std::vector<NamedTensor>& parameters,
                          const checkpoint::File& file, const std::string& prefix);

}  // namespace ddprun::train
