// run: assembles an experiment from config, plugins, data and ranks, and runs one rank of it. The only module that
// knows all the others. These are its functions for the command; this header includes none of LibTorch, so that the
// command's files compile fast.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cli/config/experiment.hpp"
#include "ddprun/error.hpp"
#include "launch/world.hpp"
#include "plugin/registry.hpp"

namespace ddprun::run {

// The LibTorch version of this build.
std::string torch_version();

// The exception that is being handled, as an Error: a message of LibTorch without its backtrace.
Error current_error();

// Checks that this machine has the GPUs that `ranks` ranks need. Queries only the driver, in a subprocess, so that the
// launcher neither loads CUDA nor starts its threads. Throws Error(plugin): one line that says what is missing and
// which key requires it. Does nothing for a run on CPUs.
void check_devices(const config::Loaded& loaded, int ranks);

// What an experiment names, found, opened and checked: config, plugins, data and the model (assembly.hpp).
struct Assembly;
using Prepared = std::shared_ptr<Assembly>;

// Prepares a run: finds all errors that assemble(), check_training_data() and prepare_resume() find;
// those of assemble() alone without `world`, the number of ranks. Ranks may be forked from this process and go on with
// the result: it has no open data set of a plugin, because that may have threads or descriptors. Starts no thread
// itself.
Prepared prepare(const config::Loaded& loaded, const plugin::Registry& registry, std::optional<int> world);

// launch.nproc if the command line gives it as a number (-n, or --set).
std::optional<int> explicit_nproc(const config::Loaded& loaded);

// The number of ranks on this host: launch.nproc, or for "auto" one per usable core, or one per configured or present
// GPU. Throws as check_devices() does, and Error(usage) if the command line asks for several ranks of a strategy that
// trains in one process.
int ranks_of(const config::Loaded& loaded);

// The newest whole commit of a run folder whose ranks have ended: the path of its model file; nothing if it has none.
// Warns about damaged ones, and removes what the ranks left half-written.
std::optional<std::string> newest_commit_in(const std::string& run_dir);

// The line that says how to resume from a run folder; "" if no checkpoint can be found there.
std::string how_to_resume(const std::string& run_dir);

// Replaces checkpoint.resume by the path of a model file: the newest commit of a folder; for "latest" and "auto", that
// of the newest run of this name in experiment.output that has one. If there is none, "auto" becomes "", a new run, and
// this is logged. False if "auto" finds a training that is at its end already: logged in one line. Does nothing without
// the key. Throws Error(usage) with the location in the config.
bool find_resume(config::Loaded& loaded);

// What a rank needs for a training.
struct RankOptions {
  config::Loaded loaded;
  launch::World world;
  Prepared prepared;      // for all ranks of `world`; null: this rank prepares the run itself
  std::string run_dir;    // "": rank 0 creates it, and each rank writes its log file (a run without our launcher)
  bool survives = false;  // with launch::Nodes::least
};

// Runs the rank to its end: writes files into the run folder, and on rank 0 results to stdout. Returns the exit code:
// interrupted or terminated if the ranks stopped by a signal, equal on all ranks; under our own launcher, which returns
// that code itself, ok. Throws Error; an error in training names the step and the phase.
ExitCode run_rank(RankOptions options, const plugin::Registry& registry);

// Creates the run folder and writes config.toml into it, with the actual number of ranks. Once per job.
std::string prepare_run_dir(config::Experiment experiment, int world);

// The folder of rank<N>.log: launch.log_dir, or the run folder.
std::string log_dir(const config::Experiment& experiment, const std::string& run_dir);

// The weights of `checkpoint`, a file or a run folder (its newest commit), and their config: `config` if it is given,
// otherwise that of the run folder. Throws Error(usage) if there is none.
struct Evaluated {
  std::string checkpoint;
  std::string config;
};
Evaluated find_evaluated(const std::string& checkpoint, const std::string& config);

// Finds, before the launcher starts ranks, the errors that run_evaluation() would find. Starts no thread.
void check_evaluation(const config::Loaded& loaded, const std::string& checkpoint, const plugin::Registry& registry,
                      int world);

// One rank: every test sample once, with the config's strategy and the checkpoint's own standardization. Rank 0 prints
// a table to stdout. Throws Error.
void run_evaluation(config::Loaded loaded, const std::string& checkpoint, launch::World world,
                    const plugin::Registry& registry);

}  // namespace ddprun::run
