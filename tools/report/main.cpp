// ddprun-report: an HTML page with charts, or a run's records as CSV.
#include "tools/report/report.hpp"

#include "cli/console/command_line.hpp"
#include "cli/console/program.hpp"
#include "record/run_dir.hpp"
#include "tools/lib/run.hpp"

namespace ddprun::report {
namespace {

void declare(CLI::App& to, std::vector<std::string>& paths, std::string& page, std::string& csv) {
  to.footer(
      "Examples: ddprun report latest\n"
      "          ddprun report runs/quickstart-20261122-101500\n"
      "          ddprun report runs/one-rank-* runs/two-ranks-* --out scaling.html\n"
      "          ddprun report runs/quickstart-20261122-101500 --csv steps.csv\n"
      "The page is one file that opens offline. docs/reports.md describes what is on it, and the columns of --csv.");
  to.add_option(
        "paths", paths,
        "Run folders to compare (latest: the newest in runs), files of `ddprun bench --json`, or the folder of a "
        "comparison.")
      ->required()
      ->type_name("PATH");
  auto* out =
      to.add_option(
            "--out", page,
            "The file of the page. The default is report.html, in the given folder if there is one, otherwise in "
            "the current one.")
          ->type_name("FILE");
  to.add_option("--csv", csv,
                "Instead of a page, write every step of every rank of one run into this file, or steps.csv and "
                "epochs.csv into this folder.")
      ->excludes(out)
      ->type_name("FILE|DIR");
}

ExitCode run_program(int argc, char** argv) {
  std::vector<std::string> paths;
  std::string page, csv;
  const auto cli = console::tool_command("report");
  declare(*cli, paths, page, csv);
  if (const auto end = console::parse(*cli, argc, argv)) return *end;
  for (std::string& path : paths) path = record::named_run(path);
  if (!csv.empty() && paths.size() > 1) throw Error(ExitCode::usage, "--csv: expected the folder of one run");
  const auto made = csv.empty() ? std::vector{make(paths, page)} : write_csv(paths[0], csv);
  for (const std::string& path : made) std::printf("%s\n", path.c_str());
  return ExitCode::ok;
}

}  // namespace
}  // namespace ddprun::report

int main(int argc, char** argv) {
  return ddprun::console::run_program([&] { return ddprun::report::run_program(argc, argv); });
}
