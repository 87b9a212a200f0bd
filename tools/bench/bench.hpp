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

}  // namespace ddprun::bench
