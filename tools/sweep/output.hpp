// The console output and the files of a sweep.
#pragma once

#include <string>
#include <vector>

#include "cli/console/table.hpp"
#include "tools/report/page.hpp"
#include "tools/sweep/sweep.hpp"

namespace ddprun::sweep {

// A key of sweep.json, of the last epoch that the trial completed. NaN if it was not measured.
double metric_of(const TrialResult& result, const std::string& by);

// Finished trials first, best first; then stopped ones, then failed ones.
void sort_results(std::vector<TrialResult>& results, const std::string& by);

// "finished after epoch 2, test loss 0.1234", "stopped after epoch 2", "failed: ...", with the set of `by`.
std::string outcome_text(const TrialResult& result, const std::string& by);

// About the first result: its command line, and what one run of each setting does not show. Empty if no trial finished.
std::vector<std::string> about_best(const Request& request, const std::vector<TrialResult>& results);

console::Table sweep_table(const Request& request, const std::vector<TrialResult>& results);
std::string sweep_json(const Request& request, const std::vector<TrialResult>& results);
report::Page sweep_page(const Request& request, const std::vector<TrialResult>& results);

}  // namespace ddprun::sweep
