// `ddprun sweep`: an experiment tried with many settings, and which was best.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ddprun/error.hpp"
#include "ddprun/records.hpp"
#include "tools/compare/request.hpp"
#include "tools/compare/variant.hpp"

namespace ddprun::sweep {

struct Request {
  std::string config;
  std::vector<std::string> vary;       // "key=value,value", or with random also "key=low..high"
  std::vector<std::string> overrides;  // --set, for all trials
  std::optional<int64_t> random;       // so many trials at random; none: the grid
  uint64_t seed = 0;                   // of what is drawn
  std::string by = "test.loss";        // or "test.accuracy", "throughput"
  bool stop_losers = true;
  compare::Running running;
};

enum class Outcome { finished, stopped, failed };

struct TrialResult {
  compare::Variant variant;
  std::vector<std::string> values;  // of the keys that vary, in their order
  Outcome outcome = Outcome::finished;
  std::string cause;                        // of a failure
  std::string dir;                          // run folder
  std::vector<record::EpochRecord> epochs;  // as far as it came
  double test_loss = record::kAbsent;
  double test_accuracy = record::kAbsent;
  double throughput = record::kAbsent;  // of finished trials
  double total_time = record::kAbsent;  // of training
};

// The median stopping rule (Golovin et al. 2017, Google Vizier, section 3.2.2, with the measure of the epoch itself):
// true where the newest epoch of `trial` measures worse than the median of the finished trials at the same epoch. At
// least two trials must have finished it. `smaller_is_better` for a loss.
bool is_loser(const std::vector<double>& trial, const std::vector<std::vector<double>>& finished,
              bool smaller_is_better);

// Runs all trials one after another; a trial that fails is a result, not the end. Prints the table, best first, and
// writes sweep.json and, where it can be drawn (page_file.hpp), report.html. Gives ok where a trial finished, else
// failure. Throws Error(usage) before anything starts.
ExitCode run(const Request& request);

}  // namespace ddprun::sweep
