// SGD, Adam and AdamW in one pass over each parameter, as torch.optim's fused = True computes them, bit for bit.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <optional>
#include <vector>

namespace ddprun::train {

// A fused optimizer. Its kernels can read on the GPU whether to skip a step, so the host need not wait for the GPU.
class FusedOptimizer {
 public:
  virtual ~FusedOptimizer() = default;
  // If this number (float32, no dimensions, on the parameters' device) is 1, the next step changes nothing. After the
  // first call, call it before each step: from then on, steps are counted on the device.
  void skip_where(const torch::Tensor& overflow) { skip_ = overflow; }
  // Waits for the device and writes the number of steps into the optimizer's state. Call it before the state is saved.
  virtual void flush() {}

 protected:
  std::optional<torch::Tensor> skip_;
};

// Options, state and serialization are those of LibTorch's classes; amsgrad and dampening are ignored. Parameters
// without a gradient do not change. A step reads and writes each parameter, its gradient and its state once; unfused
// operations pass over them several times. Each returned optimizer is also a FusedOptimizer.
std::unique_ptr<torch::optim::Optimizer> fused_sgd(std::vector<torch::Tensor> parameters,
                                                   torch::optim::SGDOptions options);
std::unique_ptr<torch::optim::Optimizer> fused_adam(std::vector<torch::Tensor> parameters,
                                                    torch::optim::AdamOptions options);
std::unique_ptr<torch::optim::Optimizer> fused_adamw(std::vector<torch::Tensor> parameters,
                                                     torch::optim::AdamWOptions options);

}  // namespace ddprun::train
