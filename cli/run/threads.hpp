// The compute threads of a rank.
#pragma once

#include <cstdint>

#include "cli/config/experiment.hpp"
#include "launch/world.hpp"

namespace ddprun::run {

// Gives this rank, or under dp each of its devices, launch.threads or its fraction of the cores. Returns the number.
int64_t use_threads(const config::Experiment& experiment, const launch::World& world);

}  // namespace ddprun::run
