// Runs cases in worlds of ranks and combines the ranks' results into one verdict per case.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/conformance/leftovers.hpp"
#include "tools/conformance/printer.hpp"
#include "tools/conformance/suite.hpp"

namespace ddprun::conformance {

std::string world_name(const Settings& settings, int size, testing::As as);

// Runs the cases in one world, and starts a new world after a case that broke it; `sink` gets each result immediately.
// It forks, so the caller must have only one thread.
void run_cases(const Settings& settings, int size, testing::As as, const std::vector<Case>& cases, Leftovers& leftovers,
               const std::function<void(const Result&)>& sink);

}  // namespace ddprun::conformance
