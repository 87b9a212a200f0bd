// What a process of ddprun says when it fails, and to whom.
#pragma once

#include <string>

#include "ddprun/error.hpp"

namespace ddprun::app {

// Tells a failure: to our own launcher, where this process is one of its ranks (the launcher prints the first cause
// once, last); else to stderr. Returns the code.
ExitCode tell(ExitCode code, const std::string& message);

}  // namespace ddprun::app
