// checkpoint.resume: finds the commit, and checks that this experiment can resume from it.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "base/store.hpp"
#include "checkpoint/folder.hpp"
#include "cli/run/assembly.hpp"
#include "launch/world.hpp"

namespace ddprun::run {

// The file of the checkpoint that `path` names: itself, or the newest whole commit of a run's folder or of its folder
// of checkpoints, where this removes what dead writers left. Nothing if the path does not exist. Throws Error: failure
// if it cannot be looked up; usage, with the folder, if that has no commit.
std::optional<std::string> checkpoint_at(const std::string& path);

// find_resume() (run.hpp) on rank 0, whose result all ranks use; hosts that lack the checkpoint get a copy. Ranks of
// one launcher on one host find it by themselves. `store` is null for world size 1. Collective.
// Throws on all ranks what find_resume() throws on rank 0.
bool find_common_resume(config::Loaded& loaded, const launch::World& world, Store* store,
                        std::chrono::milliseconds timeout);

// "nothing is left to train: ..." if a run that resumes from this state is already at its end; otherwise "".
std::string at_the_end(const config::Experiment::Train& plan, const checkpoint::File& state, const std::string& commit);

// Loads the commit's weights into the model and sets assembly.resume; call it after find_common_resume() and
// assemble(). Throws Error(usage): for each key that makes it a different run, with the old and the new value; and for
// a commit that is damaged, incomplete, in the middle of an epoch of another world size, or already at the end given by
// train.epochs or train.steps. Reads the states that `rank` restores from; without a rank, all.
void prepare_resume(Assembly& assembly, int world, std::optional<int> rank);

// The description of its run in a state file, which prepare_resume() of a later run reads.
checkpoint::Metadata state_metadata(const Assembly& assembly, const std::string& run_dir, int world,
                                    int64_t steps_per_epoch);

}  // namespace ddprun::run
