// Runs cases in worlds of ranks and combines the ranks' results into one verdict per case.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/conformance/leftovers.hpp"
#include "tools/conformance/suite.hpp"

namespace ddprun::conformance {

struct Result {
  enum class State { passed, failed, skipped };
  std::string world;  // "world 3 processes", "world 2x2 hosts"
  std::string group;
  std::string name;
  State state = State::passed;
  std::string text;  // failed: the errors, one line per rank; skipped: why
  std::vector<std::string> notes;
};

std::string world_name(const Settings& settings, int size, testing::As as);

// Runs the cases in one world, and starts a new world after a case that broke it; `sink` gets each result immediately.
// It forks, so the caller must have only one thread.
void run_cases(const Settings& settings, int size, testing::As as, const std::vector<Case>& cases, Leftovers& leftovers,
               const std::function<void(const Result&)>& sink);

}  // namespace ddprun::conformance
