// app: the command. The other modules do the work.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/config/experiment.hpp"
#include "cli/console/node_options.hpp"
#include "ddprun/error.hpp"
#include "launch/world.hpp"

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
};

// Parses the command line and runs what it selects. Returns the exit code, or throws Error.
ExitCode run(int argc, char** argv);

// Runs `body` as the program libexec/ddprun-engine does: reports its error, and returns the exit code.
int engine(const std::function<ExitCode()>& body);

// Each returns the exit code, or throws Error. In the program `ddprun`, all but launch() and plugins() replace the
// process with libexec/ddprun-engine, which has the same command line: loading LibTorch takes longer than all that
// ddprun does. Without the engine, version() still answers.
ExitCode train(const Arguments& arguments);     // ddprun --config exp.toml
ExitCode validate(const Arguments& arguments);  // ddprun validate exp.toml...
ExitCode evaluate(const Arguments& arguments);  // ddprun evaluate
ExitCode launch(const Arguments& arguments);    // ddprun launch PROGRAM
ExitCode plugins(const Arguments& arguments);   // ddprun plugins
ExitCode version(const Arguments& arguments);   // ddprun --version

// The config with --set and the options that stand for keys. Throws as config::load().
config::Loaded load_experiment(const Arguments& arguments, const std::optional<launch::World>& world);

// Sets OMP_WAIT_POLICY=passive if the compute threads of this host's ranks leave no core free: a thread that spins
// while it waits then keeps the core from a thread that has work. LibTorch's OpenMP reads the variable when it is
// loaded. Does nothing if the user has set OMP_WAIT_POLICY or GOMP_SPINCOUNT, and for a GPU.
void choose_wait_policy(const Arguments& arguments);

// Replaces this process with the program. Throws Error(failure) if it cannot be started.
[[noreturn]] void run_tool(const std::string& path, std::vector<std::string> arguments);

}  // namespace ddprun::app
