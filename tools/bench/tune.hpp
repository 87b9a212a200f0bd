// What `auto` shall take, from what was measured.
#pragma once

#include <string>
#include <vector>

#include "tools/bench/row.hpp"
#include "record/environment.hpp"

namespace ddprun::bench {

// A table in the format of ddprun/plugin/tuning.hpp, for the plan's one backend: for each number of ranks and size the
// algorithm with the least median of an allreduce in place, in the backend's own memory where it has some: what a
// training run asks for. Limits lie halfway (in the logarithm) between measured sizes. From one size to the next larger
// one an algorithm stays in the table unless another is faster by more than 3 %.
std::string tuning_of(const Plan& plan, const std::vector<Row>& rows, const record::Environment& environment);

}  // namespace ddprun::bench
