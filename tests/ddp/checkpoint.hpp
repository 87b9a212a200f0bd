// torch.utils.checkpoint of a linear module: backward computes forward again, and runs a backward of its own.
#pragma once

#include <torch/torch.h>

#include <cstdint>

namespace program {

struct Checkpoint : torch::autograd::Function<Checkpoint> {
  static torch::Tensor forward(torch::autograd::AutogradContext* context, const torch::Tensor& input,
                               torch::nn::LinearImpl* module) {
    context->save_for_backward({input});
    context->saved_data["module"] = reinterpret_cast<int64_t>(module);
    return module->forward(input);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const torch::Tensor input = context->get_saved_variables()[0].detach().requires_grad_();
    auto* const module = reinterpret_cast<torch::nn::LinearImpl*>(context->saved_data["module"].toInt());
    const torch::AutoGradMode with_grad(true);
    torch::autograd::backward({module->forward(input)}, {gradients[0]});
    return {input.grad(), {}};
  }
};

}  // namespace program
