// Runs all of `ddprun bench`.
#pragma once

#include <string>
#include <vector>

#include "base/store.hpp"
#include "ddprun/error.hpp"
#include "launch/world.hpp"
#include "tools/bench/plan.hpp"

namespace ddprun::bench {

// Measures the plan's variants in alternation and prints the table to stdout. `command` is this process's argv; each
// rank is started with it, followed by "--task". argv[0] is the program's path. Returns gate (6) for a wrong result or
// a busbw below request.min_busbw, with one line of log for each. If ranks fail, returns their exit code; they have
// reported the cause. Call it on the main thread, before any other thread starts. Throws Error.
ExitCode run(const Request& request, const Plan& plan, const std::vector<std::string>& command);

// This process is a rank of a job that a launcher has started: measures all variants in turn, each with a new backend;
// rank 0 prints and writes the files. Every rank returns the exit code of rank 0; under ddprun's launcher it throws a
// code other than ok, so that the launchers of all hosts print a line. plan.hosts is set. Collective. Throws Error.
ExitCode run_as_rank(const Request& request, const Plan& plan, const std::vector<std::string>& command,
                     Store& store, const launch::World& world);

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

// The hosts of all ranks. Collective. Throws Error(rendezvous) that names a rank if it would measure something else
// than rank 0.
std::vector<HostRanks> compare_plans(const Plan& plan, Store& store, const launch::World& world);

}  // namespace ddprun::bench
