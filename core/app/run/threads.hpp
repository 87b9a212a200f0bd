// The compute threads of a rank.
#pragma once

#include <cstdint>

#include "config/experiment.hpp"
#include "launch/world.hpp"

namespace ddprun::run {

// Gives this rank, or under dp each of its devices, launch.threads or its part of the cores; returns how many.
int64_t use_threads(const config::Experiment& experiment, const launch::World& world);

}  // namespace ddprun::run
