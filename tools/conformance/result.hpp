// The result of a case of a suite.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace ddprun::conformance {

struct Result {
  enum class State { passed, failed, skipped, not_run };
  std::string world;  // "world 3 processes", "world 2x2 hosts", "data set"
  std::string group;
  std::string name;
  State state = State::passed;
  std::string text;  // failed: the errors, one per line; skipped, not run: why
  std::vector<std::string> notes;
};

// Combinations that are not tested, because of the plugin or the machine.
struct Skipped {
  std::string what;
  std::size_t combinations = 0;
};

}  // namespace ddprun::conformance
