// The command line of `ddprun tune` as data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/console/node_options.hpp"
#include "tools/compare/request.hpp"

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

}  // namespace ddprun::tune
