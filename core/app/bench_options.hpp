// The options of `ddprun bench`.
#pragma once

#include <CLI/CLI.hpp>

#include "tools/bench/plan.hpp"

namespace ddprun::app {

// Declares them on the subcommand; what is given goes into `request`, and into `task` in a rank of a benchmark.
void declare_bench_options(CLI::App& to, bench::Request& request, std::string& task);

}  // namespace ddprun::app
