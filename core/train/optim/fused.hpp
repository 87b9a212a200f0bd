// SGD, Adam and AdamW in one pass over each parameter, as torch.optim's fused = True computes them, bit for bit.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <optional>
#include <vector>

namespace ddprun::train {

// A fused optimizer, whose kernels can find on the GPU what changes from step to step: whoever lets them need not wait
// for it, and may record a step and replay it.
class FusedOptimizer {
 public:
  virtual ~FusedOptimizer() = default;
  // Where this number (float32, no dimensions, on the parameters' device) is 1, the next step changes nothing. To be
  // called before each step from the first such one on.
  virtual void skip_where(const torch::Tensor& overflow) = 0;
  // From the next step on steps are counted on the device, and `rate` (float32, no dimensions, there), where it is
  // given, is the learning rate of all groups in place of their own.
  virtual void stay_on_device(std::optional<torch::Tensor> rate) = 0;
  // Waits for the device, and tells the optimizer's state how many steps were made. Before the state is kept.
  virtual void settle() = 0;
};

// Options, state and their serialisation are those of LibTorch's classes; options.amsgrad is not looked at. Parameters
// without a gradient stay as they are. A step reads and writes each parameter, its gradient and its state once, where
// one operation after the other passes over them several times. Each is a FusedOptimizer too.
std::unique_ptr<torch::optim::Optimizer> fused_sgd(std::vector<torch::Tensor> parameters,
                                                   torch::optim::SGDOptions options);
std::unique_ptr<torch::optim::Optimizer> fused_adam(std::vector<torch::Tensor> parameters,
                                                    torch::optim::AdamOptions options);
std::unique_ptr<torch::optim::Optimizer> fused_adamw(std::vector<torch::Tensor> parameters,
                                                     torch::optim::AdamWOptions options);

}  // namespace ddprun::train
