// Makes the runs of a comparison.
#pragma once

#include <vector>

#include "tools/compare/comparison.hpp"
#include "tools/compare/request.hpp"
#include "tools/compare/runner.hpp"

namespace ddprun::compare {

// Rounds of one run each, in turn_order(): Request::repeats, and with a precision as many more, up to max_repeats, as
// every interval against the first needs to be so narrow. `comparison` has its members and gets their runs. Throws
// Error with a failed run's exit code.
void measure(Runner& runner, const Request& request, Comparison& comparison);

// Two short runs of each variant (a twin excepted) that leave parity_steps steps of tensors.
void measure_parity(Runner& runner, const Request& request, Comparison& comparison);

}  // namespace ddprun::compare
