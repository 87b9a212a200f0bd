#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>

#include "train/reducer.hpp"

namespace ddprun::train {
namespace {

// Autograd's nodes that accumulate into our parameters, each with a hook that tells the reducer.
class Hooks {
 public:
  Hooks(Reducer& reducer, const std::vector<NamedTensor>& parameters) {
    using torch::autograd::variable_list;
    for (std::size_t index = 0; index < parameters.size(); ++index) {
      // A parameter holds its accumulator weakly: without this list the hook would go with the first graph.
      auto accumulator = torch::autograd::impl::grad_accumulator(parameters[index].tensor);
      auto hook = std::make_unique<torch::autograd::utils::LambdaPostHook>(
          [&reducer, index](const variable_list& outputs, const variable_list&) {
            reducer.add(index);
            return outputs;
          });
      keys_.push_back(accumulator->add_post_hook(std::move(hook)));
      accumulators_.push_back(std::move(accumulator));
    }
  }

  ~Hooks() {
    for (std::size_t index = 0; index < keys_.size(); ++index) accumulators_[index]->del_post_hook(keys_[index]);
  }

  Hooks(const Hooks&) = delete;
  Hooks& operator=(const Hooks&) = delete;

 private:
  std::vector<std::shared_ptr<torch::autograd::Node>> accumulators_;
  std::vector<uintptr_t> keys_;
};

}  // namespace

std::shared_ptr<void> attach(Reducer& reducer, const std::vector<NamedTensor>& parameters) {
  return std::make_shared<Hooks>(reducer, parameters);
}

}  // namespace ddprun::train
