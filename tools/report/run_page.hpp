// report.html of one run, or of several runs compared.
#pragma once

#include <vector>

#include "record/read.hpp"
#include "tools/report/page.hpp"

namespace ddprun::report {

// At least one run. Reads their traces if they have one; throws Error(usage) if a trace is damaged.
Page run_page(std::vector<record::Run> runs);

}  // namespace ddprun::report
