#include "train/reduce/gradient_hooks.hpp"

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "ddprun/error.hpp"

namespace ddprun::train {

// Autograd calls it when it has added to the parameter's gradient, also if there was nothing to add. It calls the hook
// of the program first, if there is one.
class GradientHooks::Ready : public torch::autograd::PostAccumulateGradHook {
 public:
  Ready(std::unique_ptr<PostAccumulateGradHook> of_program, GradientHooks& hooks, std::size_t index)
      : of_program_(std::move(of_program)), hooks_(hooks), index_(index) {}

  void operator()(const torch::Tensor& parameter) override {
    if (of_program_ != nullptr) (*of_program_)(parameter);
    hooks_.finished(index_);
  }

  std::unique_ptr<PostAccumulateGradHook> take_of_program() { return std::move(of_program_); }

 private:
  std::unique_ptr<PostAccumulateGradHook> of_program_;
  GradientHooks& hooks_;
  const std::size_t index_;
};

namespace impl = torch::autograd::impl;

bool GradientHooks::has(const torch::Tensor& parameter) {
  return dynamic_cast<Ready*>(impl::post_acc_grad_hooks(parameter).get()) != nullptr;
}

GradientHooks::GradientHooks(Reducer& reducer, const std::vector<NamedTensor>& parameters, bool static_graph)
    : reducer_(reducer),
      parameters_(parameters),
      counting_(static_graph),
      held_(parameters.size(), 0),
      expected_(parameters.size(), static_graph ? 0 : 1),
      missing_(expected_) {
  for (const NamedTensor& parameter : parameters) {
    if (!has(parameter.tensor)) continue;
    throw Error(ExitCode::usage, "parameter \"" + parameter.name +
                                     "\" belongs to another DistributedDataParallel object: construct one object for "
                                     "all modules with this parameter, as children of one module, or destroy the other "
                                     "object first");
  }
  for (std::size_t index = 0; index < parameters.size(); ++index) {
    const torch::Tensor& parameter = parameters[index].tensor;
    auto of_program = std::move(impl::post_acc_grad_hooks(parameter));
    impl::set_post_acc_grad_hooks(parameter, std::make_unique<Ready>(std::move(of_program), *this, index));
  }
}

GradientHooks::~GradientHooks() {
  for (const NamedTensor& parameter : parameters_) {
    auto& hook = impl::post_acc_grad_hooks(parameter.tensor);
    if (auto* ready = dynamic_cast<Ready*>(hook.get())) hook = ready->take_of_program();
  }
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
