// Makes LibTorch optimizers from [optimizer] of the config.
#pragma once

#include <torch/torch.h>

#include <memory>

#include "config/experiment.hpp"
#include "train/loop/parameters.hpp"

namespace ddprun::train {

// "sgd", "adam" or "adamw", each with the same arithmetic as in torch.optim, fused or not. scale_lr = "world"
// multiplies lr by the world size (Goyal et al. 2017). config::load has validated the config.
std::unique_ptr<torch::optim::Optimizer> make_optimizer(const config::Experiment& experiment,
                                                        const std::vector<NamedTensor>& parameters, int world);

// The learning rate at the start of training: lr, times the world size if scale_lr is "world".
double initial_lr(const config::Experiment::Optimizer& chosen, int world);

// The parameters of all groups, each once.
std::vector<torch::Tensor> parameters_of(const torch::optim::Optimizer& optimizer);

// The gradients of all parameters that have one.
std::vector<torch::Tensor> gradients_of(const torch::optim::Optimizer& optimizer);

// Sets the learning rate of all groups.
void set_learning_rate(torch::optim::Optimizer& optimizer, double rate);
double learning_rate_of(const torch::optim::Optimizer& optimizer);

}  // namespace ddprun::train
