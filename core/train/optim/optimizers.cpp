#include "train/optim/optimizers.hpp"

#include "ddprun/error.hpp"
#include "train/optim/adam.hpp"
#include "train/optim/fused.hpp"

namespace ddprun::train {

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const config::Experiment& experiment,
                                                        const std::vector<NamedTensor>& parameters, int world) {
  namespace optim = torch::optim;
  const auto& chosen = experiment.optimizer;
  std::vector<torch::Tensor> tensors;
  for (const NamedTensor& parameter : parameters) tensors.push_back(parameter.tensor);
  const double lr = initial_lr(chosen, world);
  const std::tuple<double, double> betas{chosen.betas.at(0), chosen.betas.at(1)};

  if (chosen.name == "sgd") {
    const auto options =
        optim::SGDOptions(lr).momentum(chosen.momentum).nesterov(chosen.nesterov).weight_decay(chosen.weight_decay);
    if (chosen.fused) return fused_sgd(tensors, options);
    return std::make_unique<optim::SGD>(tensors, options);
  }
  if (chosen.name == "adam") {
    const auto options = optim::AdamOptions(lr).betas(betas).eps(chosen.eps).weight_decay(chosen.weight_decay);
    return chosen.fused ? fused_adam(tensors, options) : adam(tensors, options);
  }
  if (chosen.name == "adamw") {
    const auto options = optim::AdamWOptions(lr).betas(betas).eps(chosen.eps).weight_decay(chosen.weight_decay);
    return chosen.fused ? fused_adamw(tensors, options) : adamw(tensors, options);
  }
  throw Error(ExitCode::usage, "optimizer.name = \"" + chosen.name + "\" is unknown");
}

double initial_lr(const config::Experiment::Optimizer& chosen, int world) {
  return chosen.scale_lr == "world" ? chosen.lr * world : chosen.lr;
}

std::vector<torch::Tensor> parameters_of(const torch::optim::Optimizer& optimizer) {
  std::vector<torch::Tensor> all;
  for (const auto& group : optimizer.param_groups()) {
    all.insert(all.end(), group.params().begin(), group.params().end());
  }
  return all;
}

std::vector<torch::Tensor> gradients_of(const torch::optim::Optimizer& optimizer) {
  std::vector<torch::Tensor> all;
  for (const torch::Tensor& parameter : parameters_of(optimizer)) {
    if (parameter.grad().defined()) all.push_back(parameter.grad());
  }
  return all;
}

void set_learning_rate(torch::optim::Optimizer& optimizer, double rate) {
  for (auto& group : optimizer.param_groups()) group.options().set_lr(rate);
}

double learning_rate_of(const torch::optim::Optimizer& optimizer) {
  return optimizer.param_groups().at(0).options().get_lr();
}

}  // namespace ddprun::train
