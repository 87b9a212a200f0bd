#include "train/optim/optimizers.hpp"

#include <cmath>
#include <numbers>

#include "ddprun/error.hpp"
#include "train/optim/fused.hpp"

namespace ddprun::train {
namespace {

double cosine(const Schedule& schedule, int64_t step) {
  const auto done = static_cast<double>(step - 1 - schedule.warmup);
  const auto all = static_cast<double>(schedule.total_steps - schedule.warmup);
  return schedule.min_lr + (schedule.lr - schedule.min_lr) * (1 + std::cos(std::numbers::pi * done / all)) / 2;
}

double decayed(const Schedule& schedule, int64_t step) {
  switch (schedule.decay) {
    case Decay::none: break;
    case Decay::step: {
      const int64_t epochs_done = (step - 1) / schedule.steps_per_epoch;
      return schedule.lr * std::pow(schedule.step_factor, static_cast<double>(epochs_done / schedule.step_epochs));
    }
    case Decay::cosine: return step > schedule.warmup ? cosine(schedule, step) : schedule.lr;
  }
  return schedule.lr;
}

}  // namespace

double learning_rate(const Schedule& schedule, int64_t step) {
  const double rate = decayed(schedule, step);
  if (step >= schedule.warmup) return rate;
  return rate * static_cast<double>(step) / static_cast<double>(schedule.warmup);
}

void clip_norm(const std::vector<torch::Tensor>& gradients, double limit) {
  if (gradients.empty()) return;
  const torch::NoGradGuard no_grad;
  const torch::Tensor norm = at::linalg_vector_norm(torch::stack(at::_foreach_norm(gradients, 2.0)));
  at::_foreach_mul_(gradients, ((norm + 1e-6).reciprocal() * limit).clamp_max(1.0));
}

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const OptimizerOptions& chosen,
                                                        const std::vector<NamedTensor>& parameters) {
  namespace optim = torch::optim;
  std::vector<torch::Tensor> tensors;
  for (const NamedTensor& parameter : parameters) tensors.push_back(parameter.tensor);
  if (chosen.name == "sgd") {
    auto options = optim::SGDOptions(chosen.lr).momentum(chosen.momentum).nesterov(chosen.nesterov);
    return fused_sgd(tensors, options.weight_decay(chosen.weight_decay));
  }
  const auto completed = [&](auto options) {
    return options.betas(chosen.betas).eps(chosen.eps).weight_decay(chosen.weight_decay);
  };
  if (chosen.name == "adam") return fused_adam(tensors, completed(optim::AdamOptions(chosen.lr)));
  if (chosen.name == "adamw") return fused_adamw(tensors, completed(optim::AdamWOptions(chosen.lr)));
  throw Error(ExitCode::usage, "optimizer.name = \"" + chosen.name + "\" is unknown");
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
