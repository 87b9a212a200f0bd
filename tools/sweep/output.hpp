// The console output and the files of a sweep.
#pragma once

#include <string>
#include <vector>

#include "console/table.hpp"
#include "tools/report/page.hpp"
#include "tools/sweep/sweep.hpp"

namespace ddprun::sweep {

// Finished trials first, best first; then stopped ones, then failed ones.
void sort_results(std::vector<TrialResult>& results, const std::string& by);

// "finished: test loss 0.1234", "stopped after epoch 2", "failed: ...".
std::string outcome_text(const TrialResult& result);

console::Table sweep_table(const Request& request, const std::vector<TrialResult>& results);
std::string sweep_json(const Request& request, const std::vector<TrialResult>& results);
report::Page sweep_page(const Request& request, const std::vector<TrialResult>& results);

}  // namespace ddprun::sweep
