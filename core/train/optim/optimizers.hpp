// LibTorch optimizers by name and their state, learning rate schedules and gradient clipping.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "checkpoint/safetensors.hpp"
#include "train/tensor/parameters.hpp"

namespace ddprun::train {

// The learning rate of each step is a pure function, so a resumed run needs no saved state for it. Torch-free.
enum class Decay { none, step, cosine };

// The product of warm-up and decay, as in torch.optim.lr_scheduler.
struct Schedule {
  Decay decay = Decay::none;
  double lr = 0;       // of the optimizer: the end of warm-up and the start of decay
  int64_t warmup = 0;  // in steps; the rate grows linearly from lr / warmup to lr (Goyal et al. 2017, section 2.2)
  int64_t steps_per_epoch = 1;
  int64_t total_steps = 0;   // of the whole run; must exceed warmup. Only cosine uses it
  int64_t step_epochs = 1;   // step: epochs between two reductions
  double step_factor = 0.1;  // step: the factor of each reduction
  double min_lr = 0;         // cosine: the final rate
};

// The learning rate of a global step (from 1).
//   warm-up    LinearLR(start_factor = 1 / warmup, total_iters = warmup - 1), each step
//   step       StepLR(step_epochs, step_factor), each epoch; warm-up multiplies it
//   cosine     CosineAnnealingLR(total_steps - warmup, min_lr), each step after warm-up (Loshchilov and Hutter 2017)
// Thread-safe.
double learning_rate(const Schedule& schedule, int64_t step);

// Multiplies all gradients, in place, by min(1, limit / (norm + 1e-6)); norm is the global 2-norm. The operations and
// their order are those of torch.nn.utils.clip_grad_norm_ in Python. LibTorch's own function returns the norm and so
// waits for the GPU; this one does not wait. All gradients are on one device. If a gradient is not finite, the results
// are not either.
void clip_norm(const std::vector<torch::Tensor>& gradients, double limit);

struct OptimizerOptions {
  std::string name = "sgd";  // or "adam", "adamw"
  double lr = 0.01;          // at the start of training
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0;
  std::tuple<double, double> betas = {0.9, 0.999};
  double eps = 1e-8;
};

// Each is a FusedOptimizer, with the arithmetic of torch.optim's fused = True. Throws Error(usage) for another name.
std::unique_ptr<torch::optim::Optimizer> make_optimizer(const OptimizerOptions& chosen,
                                                        const std::vector<NamedTensor>& parameters);

// The parameters of all groups, each once.
std::vector<torch::Tensor> parameters_of(const torch::optim::Optimizer& optimizer);

// The gradients of all parameters that have one.
std::vector<torch::Tensor> gradients_of(const torch::optim::Optimizer& optimizer);

// Sets the learning rate of all groups.
void set_learning_rate(torch::optim::Optimizer& optimizer, double rate);
double learning_rate_of(const torch::optim::Optimizer& optimizer);

// The state of an optimizer as named tensors. SGD: "<parameter>.momentum_buffer"; Adam and AdamW:
// "<parameter>.exp_avg", ".exp_avg_sq", ".step" (int64, a scalar) and, with amsgrad, ".max_exp_avg_sq"; RMSprop
// and Adagrad likewise under PyTorch's names. State that does not exist yet, before the first step or without momentum,
// is left out. The tensors share the optimizer's memory. `parameters` are the optimizer's parameters with their names.
// Throws Error(failure) for an optimizer of another kind.
std::vector<NamedTensor> optimizer_state(torch::optim::Optimizer& optimizer,
                                         const std::vector<NamedTensor>& parameters);

// Restores such a state from the tensors that the file holds under `prefix` and those names. A parameter without
// tensors in the file has no state afterwards. Throws Error(usage) that names file and tensor if a shape or dtype is
// wrong, a part is missing, or a tensor under the prefix is of another optimizer or another module; the optimizer is
// unchanged then.
void load_optimizer_state(torch::optim::Optimizer& optimizer, const std::vector<NamedTensor>& parameters,
                          const checkpoint::File& file, const std::string& prefix);

}  // namespace ddprun::train
