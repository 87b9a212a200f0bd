// From [optimizer] of the config to LibTorch's optimizers.
#pragma once

#include <torch/torch.h>

#include <memory>

#include "config/experiment.hpp"
#include "train/loop/parameters.hpp"

namespace ddprun::train {

// "sgd", "adam" or "adamw", each with the same arithmetic as its namesake in torch.optim, fused or not. scale_lr =
// "world" multiplies lr with the world size (Goyal et al. 2017). The config has been checked by config::load.
std::unique_ptr<torch::optim::Optimizer> make_optimizer(const config::Experiment& experiment,
                                                        const std::vector<NamedTensor>& parameters, int world);

// The learning rate that training starts from: lr, times the world size where scale_lr says so.
double initial_lr(const config::Experiment::Optimizer& chosen, int world);

// The parameters of all groups, each once.
std::vector<torch::Tensor> parameters_of(const torch::optim::Optimizer& optimizer);

// The gradients of those that have one.
std::vector<torch::Tensor> gradients_of(const torch::optim::Optimizer& optimizer);

// The learning rate of all groups, which have one.
void set_learning_rate(torch::optim::Optimizer& optimizer, double rate);
double learning_rate_of(const torch::optim::Optimizer& optimizer);

}  // namespace ddprun::train
