// The files and folders that a config names as input.
#pragma once

#include "cli/config/experiment.hpp"

namespace ddprun::config {

// data.root, data.difficulty, model.weights, checkpoint.resume, comm.options.tuning, and model.name, data.name and
// comm.backend if they name a file: a relative path in the file is relative to the file's folder. load() calls this.
// One that --set or a pipe gives stays as it is: relative to the current folder.
void find_from_config(Experiment& experiment, const Sources& sources);

// Makes these paths absolute, for a config file in another folder.
void make_paths_absolute(Experiment& experiment);

}  // namespace ddprun::config
