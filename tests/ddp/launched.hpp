// Programs of tests as ranks.
#pragma once

#include <algorithm>
#include <chrono>
#include <sstream>
#include <string>
#include <vector>

#include "support/process.hpp"

namespace ddprun::testing {

// Starts `command` under ddprun's launcher, or as it is for one rank, with a backend.
inline ProcessResult run_launched(int ranks, const std::string& backend, const std::vector<std::string>& command,
                                  std::vector<std::string> variables = {}) {
  std::vector<std::string> all;
  if (ranks > 1) all = {DDPRUN_PROGRAM, "launch", "--nproc-per-node", std::to_string(ranks)};
  all.insert(all.end(), command.begin(), command.end());
  variables.push_back("DDPRUN_BACKEND=" + backend);
  variables.push_back("OMP_NUM_THREADS=1");
  return Process(all, variables).wait(std::chrono::seconds(60));
}

// The lines of the ranks, sorted, without the launcher's "[rank1] ".
inline std::vector<std::string> sorted_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line.starts_with("[rank") ? line.substr(line.find("] ") + 2) : line);
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

}  // namespace ddprun::testing
