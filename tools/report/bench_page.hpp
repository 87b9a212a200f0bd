// Charts of what `ddprun bench --json` wrote.
#pragma once

#include <string>
#include <vector>

#include "tools/report/page.hpp"

namespace ddprun::report {

// For each collective and number of ranks, bandwidth and time over message size, a line for each backend and algorithm;
// with several files, for each of them. Throws Error(usage) with path and reason where a file cannot be read, or holds
// something else.
Page bench_page(const std::vector<std::string>& paths);

}  // namespace ddprun::report
