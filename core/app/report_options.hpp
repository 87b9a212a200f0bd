// The options of `ddprun report`.
#pragma once

#include <CLI/CLI.hpp>

#include "report/report.hpp"

namespace ddprun::app {

// Declares them on the subcommand; what is given goes into `request`.
void declare_report_options(CLI::App& to, report::Request& request);

}  // namespace ddprun::app
