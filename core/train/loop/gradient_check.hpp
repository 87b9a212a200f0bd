// GradientCheck: finds gradients that are NaN or infinite before the optimizer uses them.
#pragma once

#include <vector>

#include "train/loop/callback.hpp"
#include "train/tensor/parameters.hpp"

namespace ddprun::train {

// Works on averaged gradients, which are equal on all ranks. So all ranks find the same gradient in the same step.
class GradientCheck final : public Callback {
 public:
  enum class Then { stop, skip };

  // parameters: those of the optimizer. then: what a gradient that is not finite causes. Stop: an Error(failure) that
  // names the parameter. Skip: the optimizer leaves out the step, and a warning names the parameter.
  GradientCheck(std::vector<NamedTensor> parameters, Then then) : parameters_(std::move(parameters)), then_(then) {}

  bool should_skip_step(int64_t step) override;

 private:
  const std::vector<NamedTensor> parameters_;
  const Then then_;
};

}  // namespace ddprun::train
