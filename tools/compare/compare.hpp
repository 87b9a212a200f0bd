// `ddprun compare`: from the command line to the answer.
#pragma once

#include "ddprun/error.hpp"
#include "tools/compare/request.hpp"

namespace ddprun::compare {

// Checks the whole request before anything starts, makes the runs (or reads those that are given), prints the tables to
// stdout, and writes compare.json and, where it can be drawn (page_file.hpp), report.html into the comparison's folder.
// Gives ok, or gate (6) where a gate does not hold. Throws Error: usage for the request, and the exit code of a run
// that fails.
ExitCode run(const Request& request);

}  // namespace ddprun::compare
