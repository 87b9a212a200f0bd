// The whole of `ddprun compare`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/console/node_options.hpp"
#include "ddprun/error.hpp"

namespace ddprun::compare {

// How runs are made.
struct Running {
  std::string program;                    // path of ddprun; "": not found, so no run can be made
  std::vector<std::string> plugin_paths;  // --plugin-path
  std::string output;                     // parent of compare-<time>/; "": experiment.output
  double timeout = 0;                     // seconds for one run; 0: none
  bool quiet = false;                     // only the results
  bool verbose = false;                   // also the output of the runs
};

struct Request {
  std::vector<std::string> inputs;             // configs, or run folders
  std::string config;                          // --config, with vary or change
  std::vector<std::string> vary;               // "key=value,value"
  std::vector<std::string> change;             // "key=value": all of one variant, against the config as it is
  std::vector<std::string> overrides;          // --set, for all variants
  std::vector<std::vector<std::string>> runs;  // groups of run folders, one for each variant
  std::vector<std::string> program;            // a program with its arguments, with vary or change
  std::vector<std::string> commands;           // one program for each variant, as the shell's text
  int64_t repeats = 5;
  std::optional<double> precision;  // relative half width of every interval; 0.02 is 2 %
  int64_t max_repeats = 30;         // with precision
  int64_t warmup_steps = 3;
  bool twin = false;  // A/A
  bool allow_different = false;
  int64_t parity_steps = 3;  // 0: no parity runs
  uint64_t seed = 0;         // of the bootstrap
  std::vector<std::string> gates;
  console::NodeOptions nodes;
  Running running;

  bool has_programs() const { return !program.empty() || !commands.empty(); }
};

// "2%" or "0.02" as 0.02. Throws Error(usage), naming `option`.
double parse_share(const std::string& option, const std::string& text);

// Checks the whole request before anything starts, makes the runs (or reads the given ones), prints the tables to
// stdout, and writes compare.json into the comparison's folder, with report.html if charts can be drawn
// (output.hpp). Returns ok, or gate (6) if a gate does not hold. Throws Error: usage for the request, or the exit
// code of a failed run.
ExitCode run(const Request& request);

}  // namespace ddprun::compare
