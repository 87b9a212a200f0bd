// The checks before any rank starts. Includes no header of LibTorch, so that the command's files compile fast.
#pragma once

#include <optional>

#include "cli/config/experiment.hpp"
#include "plugin/registry.hpp"

namespace ddprun::run {

// Checks that this machine has the GPUs that `ranks` ranks need. Queries only the driver, in a subprocess, so that the
// launcher neither loads CUDA nor starts its threads. Throws Error(plugin): one line that says what is missing and
// which key requires it. Does nothing for a run on CPUs.
void check_devices(const config::Loaded& loaded, int ranks);

// Finds all errors that assemble(), rank_batch(), check_training_data() and prepare_resume() find, and keeps nothing.
// Without `world`, the number of ranks, only those of assemble(). Starts no thread, as launch::supervise() requires.
void check(const config::Loaded& loaded, const plugin::Registry& registry, std::optional<int> world);

// launch.nproc if the command line gives it as a number (-n, or --set).
std::optional<int> explicit_nproc(const config::Loaded& loaded);

// The number of ranks on this host: launch.nproc, or for "auto" one per usable core, or one per configured or present
// GPU. Throws as check_devices() does, and Error(usage) if the command line asks for several ranks of a strategy that
// trains in one process.
int ranks_of(const config::Loaded& loaded);

// The newest whole commit of a run folder whose ranks have ended: the path of its model file; "" if it has none. Warns
// about damaged ones, and removes what the ranks left half-written.
std::string newest_commit_in(const std::string& run_dir);

// Replaces checkpoint.resume by the path of a model file: the newest commit of a folder; for "latest" and "auto", that
// of the newest run of this name in experiment.output that has one. If there is none, "auto" becomes "", a new run, and
// this is logged. False if "auto" finds a training that is at its end already: logged in one line. Does nothing without
// the key. Throws Error(usage) with the place in the config.
bool find_resume(config::Loaded& loaded);

}  // namespace ddprun::run
