// What an optimizer keeps from step to step, as named tensors.
#pragma once

#include <torch/torch.h>

#include <vector>

#include "checkpoint/safetensors.hpp"
#include "train/loop/parameters.hpp"

namespace ddprun::train {

// SGD: "<parameter>.momentum_buffer"; Adam and AdamW: "<parameter>.exp_avg", ".exp_avg_sq" and ".step" (int64, a
// scalar). What has not been made yet, before the first step or without momentum, is left out. The tensors share the
// optimizer's memory. `parameters` are the optimizer's, under their names.
std::vector<NamedTensor> optimizer_state(torch::optim::Optimizer& optimizer,
                                         const std::vector<NamedTensor>& parameters);

// Puts such a state back, whose tensors stand in the file under `prefix` and those names; a parameter that has none
// there has none afterwards. Throws Error(usage) naming file and tensor where shape, dtype or a part does not fit.
void load_optimizer_state(torch::optim::Optimizer& optimizer, const std::vector<NamedTensor>& parameters,
                          const checkpoint::File& file, const std::string& prefix);

}  // namespace ddprun::train
