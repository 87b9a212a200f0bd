// ddprun-report: a page with charts.
#include "tools/report/report.hpp"

#include "console/command_line.hpp"
#include "console/program.hpp"

namespace ddprun::report {
namespace {

void declare(CLI::App& to, Request& request) {
  to.footer(
      "Examples: ddprun report runs/quickstart-20261122-101500\n"
      "          ddprun report runs/one-rank-* runs/two-ranks-* --out scaling.html --svg\n"
      "The page holds all that it needs: it opens offline and can be sent as it is. docs/reports.md says what is on "
      "it.");
  to.add_option("paths", request.paths,
                "Folders of runs, side by side; or files of `ddprun bench --json`; or the folder of a comparison")
      ->required()
      ->type_name("PATH");
  to.add_option("--out", request.out, "The page (default: report.html in the one folder that is named, else here)")
      ->type_name("FILE");
  to.add_flag("--png", request.png, "Write each chart as a PNG too, into a folder beside the page");
  to.add_flag("--svg", request.svg, "... as an SVG");
}

ExitCode run_program(int argc, char** argv) {
  Request request;
  CLI::App cli("Make a page with charts of runs, or of benchmarks", "ddprun report");
  declare(cli, request);
  if (const auto end = console::parse(cli, argc, argv)) return *end;
  for (const std::string& path : make(request)) std::printf("%s\n", path.c_str());
  return ExitCode::ok;
}

}  // namespace
}  // namespace ddprun::report

int main(int argc, char** argv) {
  return ddprun::console::run_program([&] { return ddprun::report::run_program(argc, argv); });
}
