// Command lines that this program makes: for its ranks, and for a person to repeat.
#pragma once

#include <string>
#include <vector>

#include "app/commands.hpp"

namespace ddprun::app {

// The path of this program.
std::string this_program();

// `ddprun --config exp.toml --set a.b=c`: the training that the arguments ask for, but for what it goes on from; as a
// shell takes it.
std::string training_command(const Arguments& arguments);

}  // namespace ddprun::app
