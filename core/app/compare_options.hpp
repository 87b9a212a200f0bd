// The options of `ddprun compare` and of `ddprun sweep`. --set and --plugin-path are the caller's.
#pragma once

#include <CLI/CLI.hpp>

#include "compare/request.hpp"
#include "compare/sweep.hpp"

namespace ddprun::app {

// Each declares them on the subcommand; what is given goes into `request`.
void declare_compare_options(CLI::App& to, compare::Request& request);
void declare_sweep_options(CLI::App& to, compare::SweepRequest& request);

}  // namespace ddprun::app
