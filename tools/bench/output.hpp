// The console output and the JSON file.
#pragma once

#include <string>
#include <vector>

#include "record/environment.hpp"
#include "tools/bench/row.hpp"

namespace ddprun::bench {

// ddprun, the backends and their libraries, for record::collect_environment().
record::Environment environment_of(const Plan& plan);

// "2 hosts: node0 has ranks 0,1; node1 has ranks 2,3"; "" if all ranks are on this host.
std::string hosts_text(const Plan& plan);

// Lines that begin with '#', then a table for each collective and number of ranks.
std::string text(const Plan& plan, const std::vector<Row>& rows, const record::Environment& environment);

// Everything, samples included. `command` is argv. docs/benchmarking.md describes the keys.
std::string to_json(const Plan& plan, const std::vector<Row>& rows, const record::Environment& environment,
                    const std::vector<std::string>& command);

}  // namespace ddprun::bench
