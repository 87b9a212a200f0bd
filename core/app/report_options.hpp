// The options of `ddprun report` and `ddprun export`.
#pragma once

#include <CLI/CLI.hpp>

#include "tools/report/export.hpp"
#include "tools/report/report.hpp"

namespace ddprun::app {

// Each declares them on the subcommand; what is given goes into `request`.
void declare_report_options(CLI::App& to, report::Request& request);
void declare_export_options(CLI::App& to, report::ExportRequest& request);

}  // namespace ddprun::app
