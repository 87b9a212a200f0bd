// The whole of `ddprun tune`.
#pragma once

#include <string>
#include <vector>

#include "ddprun/error.hpp"
#include "tools/tune/request.hpp"

namespace ddprun::tune {

// Measures, chooses, compares and prints; writes the files of the request. Returns ok, also if the config is best as it
// is. Throws Error: usage for the request or for an experiment whose gradients cannot be tuned, or the exit code of a
// failed child.
ExitCode run(const Request& request, const std::vector<std::string>& command);

}  // namespace ddprun::tune
