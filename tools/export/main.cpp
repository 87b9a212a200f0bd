// ddprun-export: a run's records in formats of other programs.
#include "tools/export/export.hpp"

#include "cli/console/command_line.hpp"
#include "cli/console/program.hpp"
#include "record/run_dir.hpp"
#include "tools/lib/run.hpp"

namespace ddprun::exporter {
namespace {

void declare(CLI::App& to, ExportRequest& request) {
  to.footer(
      "Examples: ddprun export runs/quickstart-20261122-101500 --csv steps.csv\n"
      "          ddprun export runs/quickstart-20261122-101500 --tensorboard logs/quickstart && tensorboard --logdir "
      "logs\n"
      "docs/reports.md describes the columns and scalars.");
  to.add_option("run", request.run, "The folder of a run. latest: the newest run in the folder runs.")
      ->required()
      ->type_name("RUN_DIR");
  to.add_option("--csv", request.csv,
                "Write every step of every rank into this file, or steps.csv and epochs.csv into this folder.")
      ->type_name("FILE|DIR");
  to.add_option("--tensorboard", request.tensorboard, "Write an event file into this folder.")->type_name("DIR");
}

ExitCode run_program(int argc, char** argv) {
  ExportRequest request;
  CLI::App cli(std::string(console::about_tool("export")), "ddprun export");
  declare(cli, request);
  if (const auto end = console::parse(cli, argc, argv)) return *end;
  request.run = record::named_run(request.run);
  for (const std::string& path : export_run(request)) std::printf("%s\n", path.c_str());
  return ExitCode::ok;
}

}  // namespace
}  // namespace ddprun::exporter

int main(int argc, char** argv) {
  return ddprun::console::run_program([&] { return ddprun::exporter::run_program(argc, argv); });
}
