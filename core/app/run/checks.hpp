// What the command asks before any rank starts. No header of LibTorch, so that the command's files compile fast.
#pragma once

#include <cstdint>

#include "config/experiment.hpp"
#include "plugin/registry.hpp"

namespace ddprun::run {

// Whether this machine has the GPUs that `ranks` ranks need. Asks the driver alone, in a process of its own, so that the
// launcher loads no CUDA and starts none of its threads. Throws Error(plugin), one line that says what is missing and
// which key asks for it. Does nothing for a run on CPUs.
void check_devices(const config::Loaded& loaded, int ranks);

// Finds every error that assemble(), rank_batch(), check_training_data() and prepare_resume() find, and keeps nothing.
// Starts no thread: launch::supervise() requires that. Returns how many samples a rank has in a step.
int64_t check(const config::Loaded& loaded, const plugin::Registry& registry, int world);

// The number of ranks on this host: launch.nproc, or (auto) one per core that this process may use, or one per GPU that
// is named or present. Throws as check_devices() does.
int ranks_of(const config::Loaded& loaded);

// Replaces checkpoint.resume by the path of the commit's model file: the newest commit of a folder; for "latest", that
// of the newest run of this name that has one. Does nothing without the key. Throws Error(usage) with the place in the
// config.
void find_resume(config::Loaded& loaded);

}  // namespace ddprun::run
