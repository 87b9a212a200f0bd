// The learning rate of each step: a pure function, so that a resumed run needs no saved state. Torch-free.
#pragma once

#include <cstdint>

namespace ddprun::train {

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

}  // namespace ddprun::train
