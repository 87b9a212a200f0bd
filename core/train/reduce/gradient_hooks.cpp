#include "train/reduce/gradient_hooks.hpp"

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "ddprun/error.hpp"

namespace ddprun::train {
namespace {

using torch::autograd::PostAccumulateGradHook;
using torch::autograd::impl::post_acc_grad_hooks;

// Autograd calls it when it has added to the parameter's gradient, also if there was nothing to add.
struct Ready : PostAccumulateGradHook {
  Ready(std::unique_ptr<PostAccumulateGradHook> hook, std::function<void()> function)
      : of_program(std::move(hook)), finished(std::move(function)) {}
  void operator()(const torch::Tensor& parameter) override {
    if (of_program != nullptr) (*of_program)(parameter);
    finished();
  }
  std::unique_ptr<PostAccumulateGradHook> of_program;  // may be null
  std::function<void()> finished;
};

}  // namespace

bool GradientHooks::has(const torch::Tensor& parameter) {
  return dynamic_cast<Ready*>(post_acc_grad_hooks(parameter).get()) != nullptr;
}

GradientHooks::GradientHooks(Reducer& reducer, const std::vector<NamedTensor>& parameters, bool static_graph)
    : reducer_(reducer),
      parameters_(parameters),
      counting_(static_graph),
      held_(parameters.size(), 0),
      expected_(parameters.size(), static_graph ? 0 : 1),
      missing_(expected_) {
  for (const NamedTensor& parameter : parameters) {
    if (has(parameter.tensor))
      throw Error(ExitCode::usage,
                  "parameter \"" + parameter.name +
                      "\" belongs to another DistributedDataParallel object: make the modules children "
                      "of one module with one object, or destroy the other object first");
  }
  for (std::size_t index = 0; index < parameters.size(); ++index) {
    auto of_program = std::move(post_acc_grad_hooks(parameters[index].tensor));
    auto ready = std::make_unique<Ready>(std::move(of_program), [this, index] { finished(index); });
    torch::autograd::impl::set_post_acc_grad_hooks(parameters[index].tensor, std::move(ready));
  }
}

GradientHooks::~GradientHooks() {
  for (const NamedTensor& parameter : parameters_) {
    auto& hook = post_acc_grad_hooks(parameter.tensor);
    if (auto* ready = dynamic_cast<Ready*>(hook.get())) hook = std::move(ready->of_program);
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
