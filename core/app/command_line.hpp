// The command line that a person types to repeat a training.
#pragma once

#include <string>

#include "app/commands.hpp"

namespace ddprun::app {

// `ddprun --config exp.toml --set a.b=c`: the training that the arguments ask for, without the checkpoint that it
// resumes from; quoted for a shell.
std::string training_command(const Arguments& arguments);

}  // namespace ddprun::app
