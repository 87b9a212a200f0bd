// The options of a step and of the optimizer from the config.
#pragma once

#include "cli/config/experiment.hpp"
#include "train/loop/step_runner.hpp"
#include "train/optim/optimizers.hpp"

namespace ddprun::run {

// Optimizer steps of the whole run.
int64_t steps_of(const config::Experiment::Train& train, int64_t steps_per_epoch);

// scale_lr = "world" multiplies lr by the world size (Goyal et al. 2017).
train::OptimizerOptions optimizer_options(const config::Experiment::Optimizer& chosen, int world);

// Throws Error(usage) if the warm-up is as long as the run.
train::StepOptions step_options(const config::Loaded& loaded, int world, int64_t steps_per_epoch);

}  // namespace ddprun::run
