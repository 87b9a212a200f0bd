// The state of Adam and AdamW for a parameter, in LibTorch's own form, shared by all implementations of the step.
#pragma once

#include <torch/torch.h>

#include <memory>

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

}  // namespace ddprun::train
