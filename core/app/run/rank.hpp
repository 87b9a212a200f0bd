// One rank's life: assemble, meet, train, tell.
#pragma once

#include <atomic>
#include <string>

#include "config/experiment.hpp"
#include "launch/world.hpp"
#include "plugin/registry.hpp"

namespace ddprun::run {

struct RankOptions {
  config::Loaded loaded;
  launch::World world;
  std::string run_dir;                      // "": rank 0 makes it (a run without our launcher)
  std::string command;                      // that started the run, to be repeated by a person
  bool own_log = false;                     // nobody else writes this rank's log file
  const std::atomic<bool>* stop = nullptr;  // raised by a signal, in a run without launcher
};

// Runs the rank to its end: files into the run folder, results of rank 0 to stdout. Throws Error; what it throws from
// within training says the step and the phase.
void run_rank(RankOptions options, const plugin::Registry& registry);

// Makes the run folder and writes config.toml into it, with the number of ranks that there really are. Once per job.
std::string prepare_run_dir(config::Experiment experiment, int world);

// Where rank<N>.log goes: launch.log_dir, or the run folder.
std::string log_dir(const config::Experiment& experiment, const std::string& run_dir);

}  // namespace ddprun::run
