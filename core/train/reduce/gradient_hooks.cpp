#include "train/reduce/gradient_hooks.hpp"

#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <utility>

#include "ddprun/error.hpp"

namespace ddprun::train {

GradientHooks::GradientHooks(Reducer& reducer, const std::vector<NamedTensor>& parameters, bool static_graph)
    : reducer_(reducer),
      parameters_(parameters),
      counting_(static_graph),
      held_(parameters.size(), 0),
      expected_(parameters.size(), static_graph ? 0 : 1),
      missing_(expected_) {
  using torch::autograd::variable_list;
  for (std::size_t index = 0; index < parameters.size(); ++index) {
    // A parameter keeps only a weak reference to its gradient accumulator: without this list the hook would be lost
    // with the first autograd graph.
    auto accumulator = torch::autograd::impl::grad_accumulator(parameters[index].tensor);
    auto hook = std::make_unique<torch::autograd::utils::LambdaPostHook>(
        [this, index](const variable_list& outputs, const variable_list&) {
          finished(index);
          return outputs;
        });
    keys_.push_back(accumulator->add_post_hook(std::move(hook)));
    accumulators_.push_back(std::move(accumulator));
  }
}

GradientHooks::~GradientHooks() {
  for (std::size_t index = 0; index < keys_.size(); ++index) accumulators_[index]->del_post_hook(keys_[index]);
}

void GradientHooks::add_held() {
  // In the order of their last gradients: later steps use this order for the buckets.
  std::vector<std::size_t> order;
  for (std::size_t index = 0; index < held_.size(); ++index) {
    if (held_[index] > 0) order.push_back(index);
  }
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return held_[a] < held_[b]; });
  for (const std::size_t index : order) reducer_.add(index);
  counting_ = false;
  reset();
}

void GradientHooks::reset() noexcept {
  std::fill(held_.begin(), held_.end(), 0);
  gradients_ = 0;
  begun_ = false;
  if (counting_) std::fill(expected_.begin(), expected_.end(), 0);
  missing_ = expected_;
}

void GradientHooks::finished(std::size_t index) {
  held_[index] = ++gradients_;
  if (holding_) return;
  if (!std::exchange(begun_, true) && on_first_) on_first_();
  if (counting_) {
    ++expected_[index];
    return;
  }
  if (expected_[index] == 0) {
    throw Error(ExitCode::failure, "parameter \"" + parameters_[index].name +
                                       "\" has a gradient, but had none in the first step: static_graph needs the same "
                                       "parameters in each step; set find_unused_parameters instead");
  }
  if (--missing_[index] > 0) return;
  held_[index] = 0;
  reducer_.add(index);
}

}  // namespace ddprun::train
