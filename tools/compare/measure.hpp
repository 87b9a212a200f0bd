// Makes the runs of a comparison.
#pragma once

#include <vector>

#include "tools/compare/comparison.hpp"
#include "tools/compare/request.hpp"
#include "tools/compare/runner.hpp"

namespace ddprun::compare {

// Rounds of one run per variant, in turn_order(): Request::repeats rounds; with a precision, more rounds up to
// max_repeats, until every interval against the first variant is narrow enough. `comparison` has its members and gets
// their runs. Throws Error with a failed run's exit code.
void measure(Runner& runner, const Request& request, Comparison& comparison);

// Two short runs of each variant (except a twin), which record parity_steps steps of tensors.
void measure_parity(Runner& runner, const Request& request, Comparison& comparison);

}  // namespace ddprun::compare
