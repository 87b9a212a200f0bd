// Runs all of `ddprun bench`.
#pragma once

#include <string>
#include <vector>

#include "ddprun/error.hpp"
#include "tools/bench/plan.hpp"

namespace ddprun::bench {

// Measures the plan's variants in alternation and prints the table to stdout. `command` is this process's argv; each
// rank is started with it, followed by "--task". argv[0] is the program's path. Returns gate (6) for a wrong result or
// a busbw below request.min_busbw, with one line of log for each. If ranks fail, returns their exit code; they have
// reported the cause. Call it on the main thread, before any other thread starts. Throws Error.
ExitCode run(const Request& request, const Plan& plan, const std::vector<std::string>& command);

}  // namespace ddprun::bench
