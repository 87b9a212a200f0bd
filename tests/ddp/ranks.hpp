// Starts the program of these tests as ranks, and reads what they print.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "support/contains.hpp"
#include "support/process.hpp"

namespace ddprun::testing {

using Words = std::vector<std::string>;

inline ProcessResult run(int ranks, const std::string& act, Words variables = {"DDPRUN_BACKEND=gloo"}) {
  Words command = {DDPRUN_PROGRAM, "launch", "--nproc-per-node", std::to_string(ranks), DDP_PROGRAM, act};
  if (ranks == 1) command = {DDP_PROGRAM, act};
  return Process(command, variables).wait(std::chrono::seconds(60));
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
