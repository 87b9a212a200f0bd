// Keys that are right each for itself, but not together.
#pragma once

#include "config/experiment.hpp"
#include "config/errors.hpp"

namespace ddprun::config {

// Adds a fault for every combination that cannot work. Keys that have a fault of their own already are passed over:
// what follows from them would be an echo.
void check_together(const Experiment& experiment, const Sources& sources, Errors& errors);

}  // namespace ddprun::config
