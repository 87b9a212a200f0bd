// Charts of the files of `ddprun bench --json`.
#pragma once

#include <string>
#include <vector>

#include "tools/report/page.hpp"

namespace ddprun::report {

// For each collective and number of ranks: bandwidth and time over message size, with one line per backend and
// algorithm, and per file. Throws Error(usage) with path and reason if a file cannot be read or has other content.
Page bench_page(const std::vector<std::string>& paths);

}  // namespace ddprun::report
