#include "train/optim/schedule.hpp"

#include <cmath>
#include <numbers>

namespace ddprun::train {
namespace {

double cosine(const Schedule& schedule, int64_t step) {
  const auto done = static_cast<double>(step - 1 - schedule.warmup);
  const auto all = static_cast<double>(schedule.total_steps - schedule.warmup);
  return schedule.min_lr + (schedule.lr - schedule.min_lr) * (1 + std::cos(std::numbers::pi * done / all)) / 2;
}

double decayed(const Schedule& schedule, int64_t step) {
  switch (schedule.decay) {
    case Decay::none: break;
    case Decay::step: {
      const int64_t epochs_done = (step - 1) / schedule.steps_per_epoch;
      return schedule.lr * std::pow(schedule.step_factor, static_cast<double>(epochs_done / schedule.step_epochs));
    }
    case Decay::cosine: return step > schedule.warmup ? cosine(schedule, step) : schedule.lr;
  }
  return schedule.lr;
}

}  // namespace

double learning_rate(const Schedule& schedule, int64_t step) {
  const double rate = decayed(schedule, step);
  if (step >= schedule.warmup) return rate;
  return rate * static_cast<double>(step) / static_cast<double>(schedule.warmup);
}

}  // namespace ddprun::train
