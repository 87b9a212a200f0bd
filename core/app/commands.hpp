// app: the command. One file per subcommand; what they do lives in the modules below.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ddprun/error.hpp"
#include "tools/bench/plan.hpp"
#include "tools/compare/request.hpp"
#include "tools/compare/sweep.hpp"
#include "tools/report/export.hpp"
#include "tools/report/report.hpp"

namespace ddprun::app {

// What the command line says.
struct Arguments {
  std::vector<std::string> argv;  // as it came, for the ranks
  std::string config;
  std::vector<std::string> overrides;     // --set a.b=value
  std::vector<std::string> plugin_paths;  // --plugin-path
  std::string checkpoint;                 // --checkpoint
  bool quiet = false;                     // --quiet
  bool verbose = false;                   // --verbose
  std::string data_set;                   // of ddprun data ...
  std::string root;                       // --root
  std::string mirror;                     // --mirror
  std::vector<std::string> options;       // --option key=value
  int64_t seed = 42;                      // --seed
  std::string split = "train";            // --split
  int64_t sample = 0;                     // --sample
  int64_t epoch = 0;                      // --epoch
  std::string png;                        // --png
  int64_t scale = 1;                      // --scale
  bench::Request bench;                   // of ddprun bench
  std::string bench_task;                 // --task, in its ranks
  compare::Request compare;               // of ddprun compare, but for --set and --plugin-path
  compare::SweepRequest sweep;            // of ddprun sweep, likewise
  report::Request report;                 // of ddprun report
  report::ExportRequest exported;         // of ddprun export
};

// Each returns the exit code, or throws Error.
ExitCode train(const Arguments& arguments);       // ddprun --config exp.toml
ExitCode validate(const Arguments& arguments);    // ddprun validate exp.toml
ExitCode plugins(const Arguments& arguments);     // ddprun plugins
ExitCode data_fetch(const Arguments& arguments);  // ddprun data fetch mnist
ExitCode data_info(const Arguments& arguments);   // ddprun data info mnist
ExitCode evaluate(const Arguments& arguments);    // ddprun evaluate
ExitCode bench(const Arguments& arguments);       // ddprun bench
ExitCode compare(const Arguments& arguments);     // ddprun compare
ExitCode report(const Arguments& arguments);      // ddprun report runs/...
ExitCode export_run(const Arguments& arguments);  // ddprun export runs/...
ExitCode sweep(const Arguments& arguments);       // ddprun sweep
ExitCode version(const Arguments& arguments);     // ddprun --version

}  // namespace ddprun::app
