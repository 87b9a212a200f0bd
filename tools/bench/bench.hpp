// The whole of `ddprun bench`.
#pragma once

#include <string>
#include <vector>

#include "ddprun/error.hpp"
#include "tools/bench/plan.hpp"

namespace ddprun::bench {

// Measures the plan's variants by turns and prints the table to stdout. `command` is this process's argv, with which
// each rank is started once more, with "--task" behind it; argv[0] is the program's path. Returns gate (6) for a wrong
// result or a busbw below request.min_busbw, each told in one line; the code of the ranks where they fail, which they
// have told themselves. On the main thread, while there is no other. Throws Error.
ExitCode run(const Request& request, const Plan& plan, const std::vector<std::string>& command);

}  // namespace ddprun::bench
