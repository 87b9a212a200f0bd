// What is printed, and what is kept.
#pragma once

#include <string>
#include <vector>

#include "tools/bench/row.hpp"
#include "record/environment.hpp"

namespace ddprun::bench {

// ddprun, the backends and their libraries, for record::collect_environment().
record::Environment environment_of(const Plan& plan);

// Lines that begin with '#', then a table for each collective and number of ranks.
std::string text(const Plan& plan, const std::vector<Row>& rows, const record::Environment& environment);

// Everything, samples included. `command` is argv. docs/benchmarking.md has the keys.
std::string to_json(const Plan& plan, const std::vector<Row>& rows, const record::Environment& environment,
                    const std::vector<std::string>& command);

}  // namespace ddprun::bench
