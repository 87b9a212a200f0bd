// Checks of keys whose values are valid by themselves but not together.
#pragma once

#include <optional>

#include "cli/config/errors.hpp"
#include "cli/config/experiment.hpp"

namespace ddprun::config {

// Adds an error for every combination that cannot work. Skips keys that already have an error: errors that follow from
// it would only repeat it. `ranks`: as in load().
void check_together(const Experiment& experiment, std::optional<int64_t> ranks, const Sources& sources, Errors& errors);

}  // namespace ddprun::config
