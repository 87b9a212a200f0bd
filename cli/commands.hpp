// app: the command. One file per subcommand; the other modules do the work.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/console/node_options.hpp"
#include "ddprun/error.hpp"

namespace ddprun::app {

// The parsed command line.
struct Arguments {
  std::vector<std::string> argv;  // unchanged, for the ranks
  std::string config;
  std::vector<std::string> configs;       // of the command validate
  std::vector<std::string> overrides;     // --set a.b=value
  std::vector<std::string> plugin_paths;  // --plugin-path
  std::string checkpoint;                 // --checkpoint
  std::optional<int> ranks;               // --ranks: of ddp on all hosts
  console::NodeOptions nodes;             // --nnodes, --nproc-per-node, ...
  std::vector<std::string> program;       // of the command launch, with its arguments
  std::string grace;                      // --grace of the command launch
  bool quiet = false;                     // --quiet
  bool verbose = false;                   // --verbose
  bool tensorboard = false;               // --tensorboard
};

// Parses the command line and runs what it selects. Returns the exit code, or throws Error.
ExitCode run(int argc, char** argv);

// All of the program libexec/ddprun-engine but its exit: reports errors, and returns the exit code.
int engine(const std::vector<std::string>& command);

// Each returns the exit code, or throws Error. In the program `ddprun`, all but launch() replace the process with
// libexec/ddprun-engine, which has the same command line: loading LibTorch takes longer than all that ddprun does.
ExitCode train(const Arguments& arguments);     // ddprun --config exp.toml
ExitCode validate(const Arguments& arguments);  // ddprun validate exp.toml...
ExitCode evaluate(const Arguments& arguments);  // ddprun evaluate
ExitCode launch(const Arguments& arguments);    // ddprun launch PROGRAM
ExitCode plugins(const Arguments& arguments);   // ddprun plugins
ExitCode version(const Arguments& arguments);   // ddprun version

}  // namespace ddprun::app
