#include "train/optim/fused.hpp"

#include <map>
#include <type_traits>
#include <utility>

namespace ddprun::train {
namespace {

namespace optim = torch::optim;

// The kernels iterate over memory and assume that a gradient has the same layout as its parameter.
torch::Tensor laid_as(const torch::Tensor& parameter, const torch::Tensor& gradient) {
  if (gradient.strides() == parameter.strides()) return gradient;
  return torch::empty_like(parameter).copy_(gradient);
}

// Calls take(parameter, gradient) for every parameter that has a gradient.
void for_each_gradient(optim::OptimizerParamGroup& group, auto&& take) {
  for (torch::Tensor& parameter : group.params()) {
    if (parameter.grad().defined()) take(parameter, laid_as(parameter, parameter.grad()));
  }
}

// A parameter's entry of an optimizer's state. The first call creates it.
template <class State>
State& state_of(auto& states, const torch::Tensor& parameter) {
  auto& state = states[parameter.unsafeGetTensorImpl()];
  if (state == nullptr) state = std::make_unique<State>();
  return static_cast<State&>(*state);
}

// A tensor of such an entry. At first it is zeros with the parameter's memory layout.
torch::Tensor begun(torch::Tensor& tensor, const torch::Tensor& parameter) {
  if (!tensor.defined()) tensor = torch::zeros_like(parameter);
  return tensor;
}

class FusedSgd final : public optim::SGD, public FusedOptimizer {
 public:
  using SGD::SGD;

  torch::Tensor step(LossClosure closure) override {
    const torch::Tensor loss = closure ? closure() : torch::Tensor();
    const torch::NoGradGuard no_grad;
    for (auto& group : param_groups_) {
      const auto& options = static_cast<const optim::SGDOptions&>(group.options());
      std::vector<torch::Tensor> parameters, gradients, momenta;
      for_each_gradient(group, [&](const torch::Tensor& parameter, torch::Tensor gradient) {
        parameters.push_back(parameter);
        gradients.push_back(std::move(gradient));
        if (options.momentum() == 0) return;
        momenta.push_back(begun(state_of<optim::SGDParamState>(state_, parameter).momentum_buffer(), parameter));
      });
      if (parameters.empty()) continue;
      // Without dampening, a first gradient that is added to a momentum of zeros becomes the momentum.
      constexpr double dampening = 0;
      constexpr bool maximize = false, is_first_step = false;
      at::_fused_sgd_(parameters, gradients, momenta, options.weight_decay(), options.momentum(), options.lr(),
                      dampening, options.nesterov(), maximize, is_first_step, {}, skip_);
    }
    return loss;
  }
};

template <class Base, class Options, class State>
class FusedAdam final : public Base, public FusedOptimizer {
 public:
  using Base::Base;

  void flush() override {
    if (counts_.empty()) return;
    std::vector<torch::Tensor> counts;
    for (const auto& [parameter, count] : counts_) counts.push_back(count);
    const torch::Tensor on_host = torch::stack(counts).cpu();
    const float* count = on_host.const_data_ptr<float>();
    for (const auto& item : counts_) {
      static_cast<State&>(*this->state_.at(item.first)).step(static_cast<int64_t>(*count++));
    }
  }

  torch::Tensor step(optim::Optimizer::LossClosure closure) override {
    const torch::Tensor loss = closure ? closure() : torch::Tensor();
    const torch::NoGradGuard no_grad;
    for (auto& group : this->param_groups_) {
      Lists lists;
      for_each_gradient(group, [&](const torch::Tensor& parameter, torch::Tensor gradient) {
        State& state = state_of<State>(this->state_, parameter);
        lists.parameters.push_back(parameter);
        lists.gradients.push_back(std::move(gradient));
        lists.means.push_back(begun(state.exp_avg(), parameter));
        lists.squares.push_back(begun(state.exp_avg_sq(), parameter));
        if (skip_) {
          // Only the device knows how many steps were not skipped.
          lists.steps.push_back(count_in(counts_, parameter.unsafeGetTensorImpl(), state.step(), parameter.device()));
        } else {
          state.step(state.step() + 1);
          lists.steps.push_back(count_in(lists.counts, state.step(), state.step(), parameter.device()));
        }
      });
      update(lists, static_cast<const Options&>(group.options()));
    }
    return loss;
  }

 private:
  struct Lists {
    std::vector<torch::Tensor> parameters, gradients, means, squares, steps;
    std::map<int64_t, torch::Tensor> counts;  // by number of steps, which usually is the same for all
  };

  // A number of steps as a tensor, as the kernel needs it. The first call for a key makes it.
  static torch::Tensor count_in(auto& counts, auto key, int64_t steps, torch::Device device) {
    torch::Tensor& count = counts[key];
    const auto options = torch::TensorOptions(device).dtype(torch::kFloat32);
    if (!count.defined()) count = torch::full({}, static_cast<double>(steps), options);
    return count;
  }

  void update(Lists& lists, const Options& options) const {
    if (lists.parameters.empty()) return;
    if (skip_) at::_foreach_add_(lists.steps, 1);
    const auto call = [](const auto&... arguments) {
      if constexpr (std::is_same_v<Base, optim::AdamW>) {
        at::_fused_adamw_(arguments...);
      } else {
        at::_fused_adam_(arguments...);
      }
    };
    constexpr bool amsgrad = false, maximize = false;
    const auto [beta1, beta2] = options.betas();
    call(lists.parameters, lists.gradients, lists.means, lists.squares, at::TensorList(), lists.steps, options.lr(),
         beta1, beta2, options.weight_decay(), options.eps(), amsgrad, maximize, std::optional<torch::Tensor>(), skip_);
    if (skip_) at::_foreach_add_(lists.steps, *skip_, -1);
  }

  std::map<void*, torch::Tensor> counts_;  // by parameter, like its state
};

}  // namespace

std::unique_ptr<optim::Optimizer> fused_sgd(std::vector<torch::Tensor> parameters, optim::SGDOptions options) {
  return std::make_unique<FusedSgd>(std::move(parameters), std::move(options));
}

std::unique_ptr<optim::Optimizer> fused_adam(std::vector<torch::Tensor> parameters, optim::AdamOptions options) {
  using Adam = FusedAdam<optim::Adam, optim::AdamOptions, optim::AdamParamState>;
  return std::make_unique<Adam>(std::move(parameters), std::move(options));
}

std::unique_ptr<optim::Optimizer> fused_adamw(std::vector<torch::Tensor> parameters, optim::AdamWOptions options) {
  using AdamW = FusedAdam<optim::AdamW, optim::AdamWOptions, optim::AdamWParamState>;
  return std::make_unique<AdamW>(std::move(parameters), std::move(options));
}

}  // namespace ddprun::train
