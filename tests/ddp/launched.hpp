// Starts the program of a test as ranks, and reads what they print.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "support/process.hpp"
#include "support/text.hpp"

namespace ddprun::testing {

using Words = std::vector<std::string>;

// One rank is started without a launcher.
inline ProcessResult run(int ranks, const std::string& act, const std::string& backend = "gloo",
                         const Words& arguments = {}) {
  Words command;
  if (ranks > 1) command = {DDPRUN_PROGRAM, "launch", "--nproc-per-node", std::to_string(ranks)};
  command.push_back(USER_PROGRAM);
  command.push_back(act);
  command.insert(command.end(), arguments.begin(), arguments.end());
  return Process(command, {"DDPRUN_BACKEND=" + backend, "OMP_NUM_THREADS=1"}).wait(std::chrono::seconds(60));
}

// The lines of all ranks, without the launcher's "[rank1] ". The ranks must have succeeded.
inline Words lines_of(const ProcessResult& result) {
  REQUIRE_MESSAGE(result.code == 0, result.err);
  std::istringstream out(result.out);
  Words lines;
  for (std::string line; std::getline(out, line);) {
    lines.push_back(line.starts_with("[rank") ? line.substr(line.find("] ") + 2) : line);
  }
  return lines;
}

inline Words sorted_lines(const ProcessResult& result) {
  Words lines = lines_of(result);
  std::sort(lines.begin(), lines.end());
  return lines;
}

// The two figures of each "rank R of N: A B" line.
inline std::vector<std::pair<double, double>> states_in(const std::string& out) {
  std::vector<std::pair<double, double>> states;
  for (std::size_t at = 0; (at = out.find(": ", at)) != std::string::npos; ++at) {
    std::pair<double, double> state;
    if (std::sscanf(out.c_str() + at, ": %lf %lf", &state.first, &state.second) == 2) states.push_back(state);
  }
  return states;
}

// All ranks of each world have printed the same states as the world of one.
inline void check_same_in_all_worlds(const std::string& act, double tolerance = 1e-5) {
  const auto alone = run(1, act);
  REQUIRE_MESSAGE(alone.code == 0, alone.err);
  const auto expected = states_in(alone.out);
  REQUIRE(!expected.empty());
  for (const int ranks : {2, 3}) {
    CAPTURE(ranks);
    const auto result = run(ranks, act);
    REQUIRE_MESSAGE(result.code == 0, result.err);
    auto states = states_in(result.out);
    REQUIRE_MESSAGE(states.size() == expected.size() * static_cast<std::size_t>(ranks), result.out);
    for (const auto& state : states) {
      const bool found = std::any_of(expected.begin(), expected.end(), [&](const auto& one) {
        return std::abs(one.first - state.first) < tolerance && std::abs(one.second - state.second) < tolerance;
      });
      CHECK_MESSAGE(found, "alone: " << alone.out << "here: " << result.out);
    }
  }
}

}  // namespace ddprun::testing
