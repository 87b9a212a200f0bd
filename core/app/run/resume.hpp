// checkpoint.resume: finds the commit that is meant, and makes sure that this experiment can go on from it.
#pragma once

#include <string>

#include "app/run/assembly.hpp"
#include "checkpoint/folder.hpp"

namespace ddprun::run {

// The newest commit of a run's folder, or of its folder of checkpoints. What dead writers left there is removed. Throws
// Error(usage) that names the folder where it holds none.
checkpoint::Commit newest_commit(const std::string& folder);

// Loads the commit's weights into the model and fills assembly.resume, after find_resume() and assemble(). Throws
// Error(usage): each key that makes it another run, with its old and new value; a commit that is damaged, incomplete,
// in the middle of an epoch of another number of ranks, or already at the end of what train.epochs or train.steps say.
void prepare_resume(Assembly& assembly, int world);

// What a state file says of the run that it is of, for prepare_resume() of a later one.
checkpoint::Metadata state_metadata(const Assembly& assembly, const std::string& run_dir, int world,
                                    int64_t steps_per_epoch);

}  // namespace ddprun::run
