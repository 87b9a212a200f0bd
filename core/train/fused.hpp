// SGD, Adam and AdamW in one pass over each parameter, as torch.optim's fused = True computes them, bit for bit.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <vector>

namespace ddprun::train {

// Options, state and their serialisation are those of LibTorch's classes; options.amsgrad is not looked at. Parameters
// without a gradient stay as they are. A step reads and writes each parameter, its gradient and its state once, where
// one operation after the other passes over them several times.
std::unique_ptr<torch::optim::Optimizer> fused_sgd(std::vector<torch::Tensor> parameters,
                                                   torch::optim::SGDOptions options);
std::unique_ptr<torch::optim::Optimizer> fused_adam(std::vector<torch::Tensor> parameters,
                                                    torch::optim::AdamOptions options);
std::unique_ptr<torch::optim::Optimizer> fused_adamw(std::vector<torch::Tensor> parameters,
                                                     torch::optim::AdamWOptions options);

}  // namespace ddprun::train
