// Adam and AdamW with the arithmetic of Python's torch.optim, bit for bit.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <vector>

namespace ddprun::train {

// A parameter's entry of an optimizer's state (State: AdamParamState or AdamWParamState). The first call creates it:
// zeros with the parameter's memory layout. The reference is valid as long as the entry.
template <class State, class States>
State& adam_state(States& states, const torch::Tensor& parameter) {
  auto& state = states[parameter.unsafeGetTensorImpl()];
  if (state == nullptr) {
    auto made = std::make_unique<State>();
    made->exp_avg(torch::zeros_like(parameter));
    made->exp_avg_sq(torch::zeros_like(parameter));
    state = std::move(made);
  }
  return static_cast<State&>(*state);
}

// Kingma and Ba 2015. LibTorch's own class computes the first moment as beta1 m + (1 - beta1) g; Python's interpolates,
// m + (1 - beta1)(g - m), which rounds differently. Options, state and serialization are those of LibTorch's class;
// options.amsgrad is ignored. Parameters without a gradient do not change.
std::unique_ptr<torch::optim::Optimizer> adam(std::vector<torch::Tensor> parameters, torch::optim::AdamOptions options);

// The same with decoupled weight decay (Loshchilov and Hutter 2019).
std::unique_ptr<torch::optim::Optimizer> adamw(std::vector<torch::Tensor> parameters,
                                               torch::optim::AdamWOptions options);

}  // namespace ddprun::train
