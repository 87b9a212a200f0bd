// The settings in which experiments differ.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/config/experiment.hpp"

namespace ddprun::report {

// The value of each experiment as TOML, by key, for the keys whose values differ among the experiments that use them.
// "not given": the key has no value; "not used": the experiment's strategy or optimizer does not use it. Without
// experiment.name and experiment.output.
std::map<std::string, std::vector<std::string>> differing_settings(const std::vector<config::Experiment>& experiments);

// "name (value, value)": each value once, in order, and at most four of them.
std::string differing_text(const std::string& name, const std::vector<std::string>& values);

// Whether a host's cores are divided among its ranks or devices, so that fewer of them may have more threads each.
bool divides_cores(const config::Experiment& experiment);

}  // namespace ddprun::report
