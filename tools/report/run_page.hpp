// report.html of one run, or of several runs compared.
#pragma once

#include <string>
#include <vector>

#include "tools/lib/run.hpp"
#include "tools/report/divergence.hpp"
#include "tools/report/page.hpp"

namespace ddprun::report {

// At least one run. Reads their traces if they have one; throws Error(usage) if a trace is damaged.
Page run_page(std::vector<record::Run> runs);

// The page of a folder that has files of collectives and nothing else of a run, for example copies from several hosts.
Page collectives_page(const std::string& run_dir, const CollectivesByRank& files);

}  // namespace ddprun::report
