// The options of a step from [train] of the config.
#pragma once

#include "cli/config/experiment.hpp"
#include "train/loop/step_runner.hpp"

namespace ddprun::run {

// Optimizer steps of the whole run.
int64_t steps_of(const config::Experiment::Train& train, int64_t steps_per_epoch);

// Throws Error(usage) if the warm-up is as long as the run.
train::StepOptions step_options(const config::Loaded& loaded, int world, int64_t steps_per_epoch);

}  // namespace ddprun::run
