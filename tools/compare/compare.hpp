// The whole of `ddprun compare`.
#pragma once

#include "ddprun/error.hpp"
#include "tools/compare/request.hpp"

namespace ddprun::compare {

// Checks the whole request before anything starts, makes the runs (or reads the given ones), prints the tables to
// stdout, and writes compare.json into the comparison's folder, with report.html if charts can be drawn
// (page_file.hpp). Returns ok, or gate (6) if a gate does not hold. Throws Error: usage for the request, or the exit
// code of a failed run.
ExitCode run(const Request& request);

}  // namespace ddprun::compare
