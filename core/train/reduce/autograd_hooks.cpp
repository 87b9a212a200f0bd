#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>

#include "train/reduce/reducer.hpp"

namespace ddprun::train {
namespace {

// Autograd's nodes that accumulate into our parameters, each with a hook that tells the reducer.
class Hooks final : public GradientHooks {
 public:
  Hooks(Reducer& reducer, const std::vector<NamedTensor>& parameters)
      : reducer_(reducer), held_(parameters.size(), false) {
    using torch::autograd::variable_list;
    for (std::size_t index = 0; index < parameters.size(); ++index) {
      // A parameter holds its accumulator weakly: without this list the hook would go with the first graph.
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

  ~Hooks() override {
    for (std::size_t index = 0; index < keys_.size(); ++index) accumulators_[index]->del_post_hook(keys_[index]);
  }

  Hooks(const Hooks&) = delete;
  Hooks& operator=(const Hooks&) = delete;

  void hold(bool on) override { holding_ = on; }

  void add_held() override {
    for (std::size_t index = 0; index < held_.size(); ++index) {
      if (held_[index]) reducer_.add(index);
      held_[index] = false;
    }
  }

 private:
  void finished(std::size_t index) {
    held_[index] = holding_;
    if (!holding_) reducer_.add(index);
  }

  Reducer& reducer_;
  bool holding_ = false;
  std::vector<bool> held_;  // by parameter
  std::vector<std::shared_ptr<torch::autograd::Node>> accumulators_;
  std::vector<uintptr_t> keys_;
};

}  // namespace

std::shared_ptr<GradientHooks> attach(Reducer& reducer, const std::vector<NamedTensor>& parameters) {
  return std::make_shared<Hooks>(reducer, parameters);
}

}  // namespace ddprun::train
