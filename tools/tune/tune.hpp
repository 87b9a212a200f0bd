// The whole of `ddprun tune`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/console/node_options.hpp"
#include "ddprun/error.hpp"
#include "tools/compare/compare.hpp"

namespace ddprun::tune {

struct Request {
  std::string config;
  std::vector<std::string> overrides;    // --set
  std::vector<std::string> backends;     // candidates; empty: the config's own
  std::vector<std::string> algorithms;   // candidates; empty: all that the backends have
  std::vector<std::string> compression;  // candidates, besides the config's own
  int64_t steps = 0;                     // of each run; 0: tune chooses
  int64_t rounds = 5;                    // of the comparison
  std::string write;                     // FILE
  std::string json;                      // FILE
  console::NodeOptions nodes;
  compare::Running running;
};

// Measures, chooses, compares and prints; writes the files of the request. Returns ok, also if the config is best as it
// is. Throws Error: usage for the request or for an experiment whose gradients cannot be tuned, or the exit code of a
// failed child.
ExitCode run(const Request& request, const std::vector<std::string>& command);

}  // namespace ddprun::tune
