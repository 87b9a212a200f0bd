// Runs cases in worlds of ranks and combines the ranks' results into one verdict per case.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "testing/leftovers.hpp"
#include "tools/conformance/printer.hpp"
#include "tools/conformance/suite.hpp"

namespace ddprun::conformance {

std::string world_name(const Settings& settings, int size, testing::As as);

// Runs the cases in one world, and starts a new world after a case that broke it; `sink` gets each result immediately.
// Returns "", or why the suite should run nothing more: a required case failed, or any case with settings.fail_fast.
// It forks, so the caller must have only one thread.
std::string run_cases(const Settings& settings, int size, testing::As as, const std::vector<Case>& cases,
                      Leftovers& leftovers, const std::function<void(const Result&)>& sink);
// Passes the cases to the sink as not run.
void leave_out(const Settings& settings, int size, testing::As as, const std::vector<Case>& cases, std::size_t first,
               std::size_t last, const std::string& why, const std::function<void(const Result&)>& sink);

}  // namespace ddprun::conformance
