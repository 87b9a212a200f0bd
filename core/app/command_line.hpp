// The command line that repeats a training.
#pragma once

#include <string>

#include "app/commands.hpp"

namespace ddprun::app {

// `ddprun --config exp.toml --set a.b=c`: the training of these arguments, without a checkpoint to resume from; quoted
// for a shell.
std::string training_command(const Arguments& arguments);

}  // namespace ddprun::app
