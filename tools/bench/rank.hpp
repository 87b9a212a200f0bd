// One rank of one variant in one round.
#pragma once

#include <string>
#include <vector>

#include "base/store.hpp"
#include "launch/world.hpp"
#include "tools/bench/plan.hpp"

namespace ddprun::bench {

// What a launcher passes to its ranks: the variant, the round, and the path for the results of rank 0.
struct Task {
  int64_t round = 0;
  std::size_t variant = 0;
  std::string path;

  std::string text() const;                    // one word of a command line
  static Task parse(const std::string& text);  // throws Error(usage)
};

// Lets backends write notices (how they reach the other ranks) in round 0 only: they would be the same in each.
void note_only_once(int64_t round);

// Joins as a rank of the variant and measures all its cases; the results are in the order of cases_of(). Collective.
// Throws Error.
std::vector<comm::BenchmarkResult> measure(const Plan& plan, const Variant& variant, int64_t round,
                                           Store& store, const launch::World& world);

// Joins, measures every case of the variant, and writes what read_results() reads. Collective. Throws Error.
void run_rank(const Plan& plan, const Task& task, const launch::World& world);

// In the order of cases_of(). Throws Error(failure).
std::vector<comm::BenchmarkResult> read_results(const std::string& path);

}  // namespace ddprun::bench
