#include "cli/run/step_options.hpp"

#include "ddprun/error.hpp"

namespace ddprun::run {
namespace {

train::Schedule schedule_of(const config::Loaded& loaded, int world, int64_t steps_per_epoch) {
  const auto& train = loaded.experiment.train;
  const int64_t steps = steps_of(train, steps_per_epoch);
  if (const std::string error = config::warmup_error(train.warmup, steps); !error.empty()) {
    throw Error(ExitCode::usage, config::error(loaded.sources, "train.warmup", error));
  }
  train::Schedule schedule;
  if (train.schedule == "step") schedule.decay = train::Decay::step;
  if (train.schedule == "cosine") schedule.decay = train::Decay::cosine;
  schedule.lr = optimizer_options(loaded.experiment.optimizer, world).lr;
  schedule.warmup = train.warmup;
  schedule.steps_per_epoch = steps_per_epoch;
  schedule.total_steps = steps;
  schedule.step_epochs = train.step_epochs;
  schedule.step_factor = train.step_factor;
  schedule.min_lr = train.min_lr;
  return schedule;
}

}  // namespace

int64_t steps_of(const config::Experiment::Train& train, int64_t steps_per_epoch) {
  return train.steps ? *train.steps : train.epochs.value_or(1) * steps_per_epoch;
}

train::OptimizerOptions optimizer_options(const config::Experiment::Optimizer& chosen, int world) {
  return {.name = chosen.name,
          .lr = chosen.scale_lr == "world" ? chosen.lr * world : chosen.lr,
          .momentum = chosen.momentum,
          .nesterov = chosen.nesterov,
          .weight_decay = chosen.weight_decay,
          .betas = {chosen.betas.at(0), chosen.betas.at(1)},
          .eps = chosen.eps,
          .fused = chosen.fused};
}

train::StepOptions step_options(const config::Loaded& loaded, int world, int64_t steps_per_epoch) {
  const auto& train = loaded.experiment.train;
  train::StepOptions options;
  options.accumulate = train.accumulate;
  options.clip_norm = train.clip_norm;
  options.amp = train::amp_of(train.amp);
  options.channels_last = train.channels_last;
  options.schedule = schedule_of(loaded, world, steps_per_epoch);
  return options;
}

}  // namespace ddprun::run
