// From [optimizer] of the config to LibTorch's optimizers.
#pragma once

#include <torch/torch.h>

#include <memory>

#include "config/experiment.hpp"
#include "train/parameters.hpp"

namespace ddprun::train {

// "sgd", "adam" or "adamw", each with the same arithmetic as its namesake in torch.optim, fused or not. scale_lr = "world" multiplies
// lr with the world size (Goyal et al. 2017). The config has been checked by config::load.
std::unique_ptr<torch::optim::Optimizer> make_optimizer(const config::Experiment& experiment,
                                                        const std::vector<NamedTensor>& parameters, int world);

}  // namespace ddprun::train
