// The life of one rank: assemble, rendezvous, train, report.
#pragma once

#include <functional>
#include <string>

#include "cli/config/experiment.hpp"
#include "ddprun/error.hpp"
#include "launch/world.hpp"
#include "plugin/registry.hpp"

namespace ddprun::run {

struct RankOptions {
  config::Loaded loaded;
  launch::World world;
  std::string run_dir;  // "": rank 0 creates it (a run without our launcher)
  // The line that says how to resume from a run folder; "" if that has no checkpoint.
  std::function<std::string(const std::string& run_dir)> how_to_resume;
  bool own_log = false;  // true if no launcher writes this rank's log file
};

// Runs the rank to its end: writes files into the run folder, and on rank 0 results to stdout. Returns the exit code:
// interrupted or terminated if the ranks stopped by a signal, equal on all ranks; under our own launcher, which returns
// that code itself, ok. Throws Error; an error in training names the step and the phase.
ExitCode run_rank(RankOptions options, const plugin::Registry& registry);

// Creates the run folder and writes config.toml into it, with the actual number of ranks. Once per job.
std::string prepare_run_dir(config::Experiment experiment, int world);

// The experiment as a config in any folder needs it: with absolute paths.
config::Experiment for_any_folder(config::Experiment experiment);

// The folder of rank<N>.log: launch.log_dir, or the run folder.
std::string log_dir(const config::Experiment& experiment, const std::string& run_dir);

}  // namespace ddprun::run
