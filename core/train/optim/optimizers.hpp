// LibTorch optimizers from [optimizer] of the config, learning rate schedules and gradient clipping.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "cli/config/experiment.hpp"
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

// Whether all steps have the same rate.
inline bool is_constant(const Schedule& schedule) {
  return schedule.decay == Decay::none && schedule.warmup <= 1;
}

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

// "sgd", "adam" or "adamw", each with the same arithmetic as in torch.optim, fused or not. scale_lr = "world"
// multiplies lr by the world size (Goyal et al. 2017). config::load has validated the config.
std::unique_ptr<torch::optim::Optimizer> make_optimizer(const config::Experiment& experiment,
                                                        const std::vector<NamedTensor>& parameters, int world);

// The learning rate at the start of training: lr, times the world size if scale_lr is "world".
double initial_lr(const config::Experiment::Optimizer& chosen, int world);

// The parameters of all groups, each once.
std::vector<torch::Tensor> parameters_of(const torch::optim::Optimizer& optimizer);

// The gradients of all parameters that have one.
std::vector<torch::Tensor> gradients_of(const torch::optim::Optimizer& optimizer);

// Sets the learning rate of all groups.
void set_learning_rate(torch::optim::Optimizer& optimizer, double rate);
double learning_rate_of(const torch::optim::Optimizer& optimizer);

}  // namespace ddprun::train
