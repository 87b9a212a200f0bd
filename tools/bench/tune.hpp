// Derives from the measurement which algorithm `auto` should use.
#pragma once

#include <string>
#include <vector>

#include "record/environment.hpp"
#include "tools/bench/row.hpp"

namespace ddprun::bench {

// A table in the format of ddprun/plugin/tuning.hpp, for the plan's one backend: for each number of ranks and size, the
// algorithm with the smallest median time of an in-place allreduce, in memory that the backend allocates if it can.
// That is what a training run uses. Limits lie halfway (on a logarithmic scale) between measured sizes. From one size
// to the next larger one, the algorithm changes only if another is faster by more than 3 %.
std::string tuning_of(const Plan& plan, const std::vector<Row>& rows, const record::Environment& environment);

}  // namespace ddprun::bench
