// ddprun-report: an HTML page with charts.
#include "tools/report/report.hpp"

#include "cli/console/command_line.hpp"
#include "cli/console/program.hpp"
#include "record/run_dir.hpp"
#include "tools/lib/run.hpp"

namespace ddprun::report {
namespace {

void declare(CLI::App& to, Request& request) {
  to.footer(
      "Examples: ddprun report latest\n"
      "          ddprun report runs/quickstart-20261122-101500\n"
      "          ddprun report runs/one-rank-* runs/two-ranks-* --out scaling.html --svg\n"
      "The page is one file that opens offline. docs/reports.md describes what is on "
      "it.");
  to.add_option(
        "paths", request.paths,
        "Run folders to compare (latest: the newest in runs), files of `ddprun bench --json`, or the folder of a "
        "comparison.")
      ->required()
      ->type_name("PATH");
  to.add_option("--out", request.out,
                "The file of the page. The default is report.html, in the given folder if there is one, otherwise in "
                "the current one.")
      ->type_name("FILE");
  to.add_flag("--png", request.png, "Also write each chart as a PNG, into a folder next to the page.");
  to.add_flag("--svg", request.svg, "Also write each chart as an SVG, into the same folder.");
}

ExitCode run_program(int argc, char** argv) {
  Request request;
  CLI::App cli(std::string(console::about_tool("report")), "ddprun report");
  declare(cli, request);
  if (const auto end = console::parse(cli, argc, argv)) return *end;
  for (std::string& path : request.paths) path = record::named_run(path);
  for (const std::string& path : make(request)) std::printf("%s\n", path.c_str());
  return ExitCode::ok;
}

}  // namespace
}  // namespace ddprun::report

int main(int argc, char** argv) {
  return ddprun::console::run_program([&] { return ddprun::report::run_program(argc, argv); });
}
