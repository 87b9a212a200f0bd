#include "app/report_options.hpp"

namespace ddprun::app {

void declare_report_options(CLI::App& to, report::Request& request) {
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

void declare_export_options(CLI::App& to, report::ExportRequest& request) {
  to.footer(
      "Examples: ddprun export runs/quickstart-20261122-101500 --csv steps.csv\n"
      "          ddprun export runs/quickstart-20261122-101500 --tensorboard logs/quickstart && tensorboard --logdir "
      "logs\n"
      "docs/reports.md says what the columns and scalars are.");
  to.add_option("run", request.run, "The folder of a run")->required()->type_name("RUN_DIR");
  to.add_option("--csv", request.csv, "Write every step of every rank; into a folder: steps.csv and epochs.csv")
      ->type_name("FILE|DIR");
  to.add_option("--tensorboard", request.tensorboard, "Write an event file into this folder")->type_name("DIR");
}

}  // namespace ddprun::app
