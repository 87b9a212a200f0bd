// `ddprun sweep`: runs an experiment with many settings and finds the best.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/console/table.hpp"
#include "ddprun/error.hpp"
#include "ddprun/records.hpp"
#include "tools/compare/compare.hpp"
#include "tools/compare/variant.hpp"
#include "tools/report/page.hpp"

namespace ddprun::sweep {

struct Request {
  std::string config;
  std::vector<std::string> vary;       // "key=value,value", or with random also "key=low..high"
  std::vector<std::string> overrides;  // --set, for all trials
  std::optional<int64_t> random;       // number of random trials; none: the grid
  uint64_t seed = 0;                   // of the random trials
  std::string by;  // a loss or an accuracy, or "throughput"; "": validation.loss, or test.loss without validation sets
  bool stop_losers = true;
  compare::Running running;
};

enum class Outcome { finished, stopped, failed };

struct TrialResult {
  compare::Variant variant;
  std::vector<std::string> values;  // of the varying keys, in order
  Outcome outcome = Outcome::finished;
  std::string cause;                        // of a failure
  std::string dir;                          // run folder
  std::vector<record::EpochRecord> epochs;  // those that it completed
  double throughput = record::kAbsent;      // of finished trials
  double total_time = record::kAbsent;      // of training
};

// The median stopping rule (Golovin et al. 2017, Google Vizier, section 3.2.2, with the metric of the epoch itself):
// true if the newest epoch of `trial` has a worse metric than the median of the finished trials at the same epoch. At
// least two trials must have finished it. `smaller_is_better` for a loss.
bool is_loser(const std::vector<double>& trial, const std::vector<std::vector<double>>& finished,
              bool smaller_is_better);

// Runs all trials one after another; a failed trial is a result, not the end. Prints the table, best first, and writes
// sweep.json and, if it can be drawn (page_file.hpp), report.html. Returns ok if a trial finished, else failure. Throws
// Error(usage) before anything starts.
ExitCode run(const Request& request);

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
