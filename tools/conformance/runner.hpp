// Runs cases in worlds of ranks and joins what the ranks found into one verdict a case.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/conformance/leftovers.hpp"
#include "tools/conformance/suite.hpp"

namespace ddprun::conformance {

struct Result {
  enum class State { passed, failed, skipped };
  std::string world;  // "world 3 processes"
  std::string group;
  std::string name;
  State state = State::passed;
  std::string text;  // failed: what was wrong, a line a rank; skipped: why
  std::vector<std::string> notes;
};

std::string world_name(int size, testing::As as);

// Runs the cases in one world, and goes on in a new one behind a case that broke it; `sink` sees each result as soon as
// it is known. One thread only: it forks.
void run_cases(const Settings& settings, int size, testing::As as, const std::vector<Case>& cases, Leftovers& leftovers,
               const std::function<void(const Result&)>& sink);

}  // namespace ddprun::conformance
