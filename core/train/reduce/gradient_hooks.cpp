#include "train/reduce/gradient_hooks.hpp"

#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <utility>

namespace ddprun::train {

GradientHooks::GradientHooks(Reducer& reducer, const std::vector<NamedTensor>& parameters, bool static_graph)
    : reducer_(reducer),
      counting_(static_graph),
      held_(parameters.size(), false),
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
  for (std::size_t index = 0; index < held_.size(); ++index) {
    if (held_[index]) reducer_.add(index);
    held_[index] = false;
  }
  counting_ = false;
  begun_ = false;
  missing_ = expected_;
}

void GradientHooks::finished(std::size_t index) {
  held_[index] = true;
  if (holding_) return;
  if (!std::exchange(begun_, true) && on_first_) on_first_();
  if (counting_) {
    ++expected_[index];
    return;
  }
  if (--missing_[index] > 0) return;
  held_[index] = false;
  reducer_.add(index);
}

}  // namespace ddprun::train
