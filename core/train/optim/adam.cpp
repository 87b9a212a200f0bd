#include "train/optim/adam.hpp"

#include <cmath>
#include <type_traits>

namespace ddprun::train {
namespace {

namespace optim = torch::optim;

template <class Base, class Options, class State>
class LikePython final : public Base {
 public:
  using Base::Base;

  torch::Tensor step(optim::Optimizer::LossClosure closure) override {
    const torch::Tensor loss = closure ? closure() : torch::Tensor();
    const torch::NoGradGuard no_grad;
    for (auto& group : this->param_groups_) {
      const auto& options = static_cast<const Options&>(group.options());
      for (torch::Tensor& parameter : group.params()) {
        if (parameter.grad().defined()) update(parameter, options, adam_state<State>(this->state_, parameter));
      }
    }
    return loss;
  }

 private:
  // The operations and their order are those of torch/optim/adam.py: another order rounds differently.
  static void update(torch::Tensor& parameter, const Options& options, State& state) {
    constexpr bool decoupled = std::is_same_v<Base, optim::AdamW>;
    const auto [beta1, beta2] = options.betas();
    state.step(state.step() + 1);
    const auto step = static_cast<double>(state.step());

    torch::Tensor gradient = parameter.grad();
    if (options.weight_decay() != 0) {
      if constexpr (decoupled) {
        parameter.mul_(1 - options.lr() * options.weight_decay());
      } else {
        gradient = gradient.add(parameter, options.weight_decay());
      }
    }
    state.exp_avg().lerp_(gradient, 1 - beta1);
    state.exp_avg_sq().mul_(beta2).addcmul_(gradient, gradient, 1 - beta2);

    const double step_size = options.lr() / (1 - std::pow(beta1, step));
    const double correction = std::pow(1 - std::pow(beta2, step), 0.5);
    const torch::Tensor denominator = state.exp_avg_sq().sqrt().div_(correction).add_(options.eps());
    parameter.addcdiv_(state.exp_avg(), denominator, -step_size);
  }
};

}  // namespace

std::unique_ptr<optim::Optimizer> adam(std::vector<torch::Tensor> parameters, optim::AdamOptions options) {
  using Adam = LikePython<optim::Adam, optim::AdamOptions, optim::AdamParamState>;
  return std::make_unique<Adam>(std::move(parameters), std::move(options));
}

std::unique_ptr<optim::Optimizer> adamw(std::vector<torch::Tensor> parameters, optim::AdamWOptions options) {
  using AdamW = LikePython<optim::AdamW, optim::AdamWOptions, optim::AdamWParamState>;
  return std::make_unique<AdamW>(std::move(parameters), std::move(options));
}

}  // namespace ddprun::train
