// The command line that resumes a training.
#pragma once

#include <string>

#include "cli/commands.hpp"

namespace ddprun::app {

// "to resume: ddprun --config exp.toml --set a.b=c --set checkpoint.resume=RUN_DIR", quoted for a shell: the training
// of these arguments, from the newest checkpoint of the run folder. "" if that has none.
std::string how_to_resume(const Arguments& arguments, const std::string& run_dir);

}  // namespace ddprun::app
