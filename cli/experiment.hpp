// The experiment that a command line asks for. `ddprun` reads it before the engine does, which needs more time.
#pragma once

#include <optional>

#include "cli/commands.hpp"
#include "cli/config/experiment.hpp"
#include "launch/world.hpp"

namespace ddprun::app {

// This process's place among ranks that are started already; nothing if it must start them. Call it before the first
// thread. Throws as launch::discover().
std::optional<launch::World> find_world(const Arguments& arguments);

// The config with --set and the options that stand for keys. Throws as config::load().
config::Loaded load_experiment(const Arguments& arguments, const std::optional<launch::World>& world);

// Sets OMP_WAIT_POLICY=passive if the compute threads of this host's ranks leave no core free: a thread that spins
// while it waits then keeps the core from a thread that has work. LibTorch's OpenMP reads the variable when it is
// loaded. Does nothing if the user has set OMP_WAIT_POLICY or GOMP_SPINCOUNT, and for a GPU.
void choose_wait_policy(const Arguments& arguments);

}  // namespace ddprun::app
