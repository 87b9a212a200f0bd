// The options of `ddprun compare` and of `ddprun sweep`. --set and --plugin-path are declared by the caller.
#pragma once

#include <CLI/CLI.hpp>

#include "app/command_line.hpp"

namespace ddprun::app {

// Each declares them on the subcommand; what is given goes into `request`.
void declare_compare_options(CLI::App& to, compare::Request& request);
void declare_sweep_options(CLI::App& to, compare::SweepRequest& request);

// The request that they declared, with what else both need: --set, and the program and --plugin-path of their runs.
template <class Request>
Request completed(Request request, const Arguments& arguments) {
  request.overrides = arguments.overrides;
  request.running.program = this_program();
  request.running.plugin_paths = arguments.plugin_paths;
  return request;
}

}  // namespace ddprun::app
