// Runs all of `ddprun bench`, and its results: the table, the JSON file, and which algorithm `auto` should use.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "base/store.hpp"
#include "ddprun/error.hpp"
#include "launch/world.hpp"
#include "record/environment.hpp"
#include "tools/bench/benchmark.hpp"
#include "tools/bench/plan.hpp"

namespace ddprun::bench {

// Measures the plan's variants in alternation and prints the table to stdout. `command` is this process's argv; each
// rank is started with it, followed by "--task". argv[0] is the program's path. Returns gate (6) for a wrong result or
// a busbw below plan.request.min_busbw, with one line of log for each. If ranks fail, returns their exit code; they
// have reported the cause. Call it on the main thread, before any other thread starts. Throws Error.
ExitCode run(const Plan& plan, const std::vector<std::string>& command);

// This process is a rank of a job that a launcher has started: measures all variants in turn, each with a new backend;
// rank 0 prints and writes the files. Every rank returns the exit code of rank 0; under ddprun's launcher it throws a
// code other than ok, so that the launchers of all hosts print a line. plan.hosts is set. Collective. Throws Error.
ExitCode run_as_rank(const Plan& plan, const std::vector<std::string>& command, Store& store,
                     const launch::World& world);

// What a launcher passes to its ranks: the round, the variant, and the path for the results of rank 0.
using Task = std::tuple<int64_t, std::size_t, std::string>;

// Joins, measures every case of the variant, and writes the results in the order of cases_of(). Collective. Throws
// Error.
void run_rank(const Plan& plan, const Task& task, const launch::World& world);

// The hosts of all ranks. Collective. Throws Error(rendezvous) that names a rank if it would measure something else
// than rank 0.
std::vector<HostRanks> compare_plans(const Plan& plan, Store& store, const launch::World& world);

// A line of the table.
struct Row {
  const Variant* variant = nullptr;  // of the plan, which outlives it
  comm::BenchmarkCase what;
  std::vector<comm::BenchmarkResult> rounds;

  std::size_t bytes() const { return comm::bytes_of(what, variant->ranks); }
  std::size_t count() const { return comm::count_of(what, variant->ranks); }
  const comm::Execution& execution() const { return rounds.back().execution; }
  uint64_t wrong() const;
  // The time of one call in seconds, over the samples of all rounds. 0.5 is the median.
  double quantile(double share) const;
  // At the median: bytes / time, and that times comm::bus_factor(), in bytes per second.
  double algbw() const;
  double busbw() const;
};

// Without rounds yet. Sorted by collective, ranks and size, so that rows to compare are next to each other.
std::vector<Row> rows_of(const Plan& plan);

// ddprun, the backends and their libraries, for record::collect_environment().
record::Environment environment_of(const Plan& plan);

// "2 hosts: node0 has ranks 0 and 1; node1 has ranks 2 and 3"; "" if all ranks are on this host.
std::string hosts_text(const Plan& plan);

// Lines that begin with '#', then a table for each collective and number of ranks.
std::string text(const Plan& plan, const std::vector<Row>& rows, const record::Environment& environment);

// Everything, samples included. `command` is argv. docs/benchmarking.md describes the keys.
std::string to_json(const Plan& plan, const std::vector<Row>& rows, const record::Environment& environment,
                    const std::vector<std::string>& command);

// A table in the format of ddprun/plugin/tuning.hpp, for the plan's one backend: for each number of ranks and size, the
// algorithm with the smallest median time of an in-place allreduce, in memory that the backend allocates if it can.
// That is what a training run uses. Limits lie halfway (on a logarithmic scale) between measured sizes. From one size
// to the next larger one, the algorithm changes only if another is faster by more than 3 %.
std::string tuning_of(const Plan& plan, const std::vector<Row>& rows, const record::Environment& environment);

}  // namespace ddprun::bench
