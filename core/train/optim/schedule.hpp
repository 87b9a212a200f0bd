// The learning rate of each step: a pure function, so that a run that goes on needs no state of it. Torch-free.
#pragma once

#include <cstdint>

namespace ddprun::train {

enum class Decay { none, step, cosine };

// Warm-up times decay, as torch.optim.lr_scheduler has them.
struct Schedule {
  Decay decay = Decay::none;
  double lr = 0;       // of the optimizer: what warm-up leads to and decay starts from
  int64_t warmup = 0;  // steps; the rate grows linearly from lr / warmup to lr (Goyal et al. 2017, section 2.2)
  int64_t steps_per_epoch = 1;
  int64_t total_steps = 0;   // of the whole run; more than warmup. Only cosine looks at it
  int64_t step_epochs = 1;   // step: epochs between two reductions
  double step_factor = 0.1;  // step: what each multiplies the rate with
  double min_lr = 0;         // cosine: what the rate falls to
};

// Whether all steps have the same rate.
inline bool is_constant(const Schedule& schedule) {
  return schedule.decay == Decay::none && schedule.warmup <= 1;
}

// The rate of a global step, from 1.
//   warm-up    LinearLR(start_factor = 1 / warmup, total_iters = warmup - 1), each step
//   step       StepLR(step_epochs, step_factor), each epoch; warm-up multiplies it
//   cosine     CosineAnnealingLR(total_steps - warmup, min_lr), each step after warm-up (Loshchilov and Hutter 2017)
// Any thread.
double learning_rate(const Schedule& schedule, int64_t step);

}  // namespace ddprun::train
