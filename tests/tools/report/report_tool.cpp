// `ddprun report` and `ddprun export` without the rest of ddprun, and so without torch: the same options and the same
// code behind them.
#include <cstdio>

#include "app/commands.hpp"
#include "app/report_options.hpp"
#include "ddprun/error.hpp"

using namespace ddprun;

int main(int argc, char** argv) {
  app::Arguments arguments;
  CLI::App cli("report", "report");
  cli.require_subcommand(1);
  app::declare_report_options(*cli.add_subcommand("report"), arguments.report);
  app::declare_export_options(*cli.add_subcommand("export"), arguments.exported);
  CLI11_PARSE(cli, argc, argv);
  try {
    return static_cast<int>(cli.got_subcommand("report") ? app::report(arguments) : app::export_run(arguments));
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.code());
  }
}
