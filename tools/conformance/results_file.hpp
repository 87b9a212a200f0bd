// The results of a suite as files for other programs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/conformance/result.hpp"

namespace ddprun::conformance {

// Of the plugin under test.
struct Tested {
  std::string name;
  std::string version;
  std::string path;              // "": part of ddprun
  std::optional<uint64_t> seed;  // of drawn sizes
};

// One <testsuite> for each world, in which the name of a test case is unique. A case that was not run has <skipped>,
// with a message that starts with "not run: ".
std::string junit_of(const Tested& plugin, const std::vector<Result>& results);
// {"plugin", "version", "path", "seed", "passed", "failed", "skipped", "not_run", "cases": [{"world", "group", "name",
// "state", "text", "notes"}], "undeclared": [{"what", "combinations"}]}
std::string json_of(const Tested& plugin, const std::vector<Result>& results, const std::vector<Skipped>& undeclared);

}  // namespace ddprun::conformance
