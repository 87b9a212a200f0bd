#include "train/optimizers.hpp"

#include "base/error.hpp"
#include "train/adam.hpp"

namespace ddprun::train {

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const config::Experiment& experiment,
                                                        const std::vector<NamedTensor>& parameters, int world) {
  namespace optim = torch::optim;
  const auto& chosen = experiment.optimizer;
  std::vector<torch::Tensor> tensors;
  for (const NamedTensor& parameter : parameters) tensors.push_back(parameter.tensor);
  const double lr = chosen.scale_lr == "world" ? chosen.lr * world : chosen.lr;
  const std::tuple<double, double> betas{chosen.betas.at(0), chosen.betas.at(1)};

  if (chosen.name == "sgd") {
    return std::make_unique<optim::SGD>(
        tensors,
        optim::SGDOptions(lr).momentum(chosen.momentum).nesterov(chosen.nesterov).weight_decay(chosen.weight_decay));
  }
  if (chosen.name == "adam") {
    return adam(tensors, optim::AdamOptions(lr).betas(betas).eps(chosen.eps).weight_decay(chosen.weight_decay));
  }
  if (chosen.name == "adamw") {
    return adamw(tensors, optim::AdamWOptions(lr).betas(betas).eps(chosen.eps).weight_decay(chosen.weight_decay));
  }
  throw Error(ExitCode::usage, "optimizer.name = \"" + chosen.name + "\" is unknown");
}

}  // namespace ddprun::train
