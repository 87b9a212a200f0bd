// report.html of one run, or of several side by side.
#pragma once

#include <vector>

#include "record/read.hpp"
#include "tools/report/page.hpp"

namespace ddprun::report {

// At least one run. Reads their traces where they have one; throws Error(usage) where such a file is damaged.
Page run_page(std::vector<record::Run> runs);

}  // namespace ddprun::report
