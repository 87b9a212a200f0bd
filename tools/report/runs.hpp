// The charts and tables that compare runs. Each function accepts any number of runs, and returns nothing if none of
// them has recorded the figures.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/config/experiment.hpp"
#include "tools/lib/run.hpp"
#include "tools/report/page.hpp"

namespace ddprun::report {

struct NamedRun {
  std::string name;  // in legends and tables; unique
  tools::Run run;
  std::optional<config::Experiment> experiment{};  // none if its config cannot be read: the page has the reason
};

// Runs with the names of their folders, without the time if the names are unique without it.
std::vector<NamedRun> named(std::vector<tools::Run> runs);

// Loss and accuracy by epoch and by step, and the learning rate if it changes. For one run, training and test are two
// lines of a chart; for several runs, one line per run.
std::vector<Chart> learning_charts(const std::vector<NamedRun>& runs);

// The parts of the average step, in seconds and in per cent.
std::vector<Chart> split_charts(const std::vector<NamedRun>& runs);

// Step time over steps, and its distribution: for one run, one line per rank; for several, the slowest rank of each.
std::vector<Chart> step_time_charts(const std::vector<NamedRun>& runs);

// Throughput over ranks (dp: devices) and the ideal line from the fewest ranks: one chart for each model and data set
// with runs of several sizes.
std::vector<Chart> scaling_charts(const std::vector<NamedRun>& runs);

// What differs between the runs and may be the reason for other figures: time, load, host, versions, batch, settings.
// Each as "optimizer.lr (0.01, 0.02)". Empty for one run.
std::vector<std::string> differences(const std::vector<NamedRun>& runs);

// A run in one sentence.
std::string summary_sentence(const NamedRun& run);

// Settings and results, one column per run.
TitledTable results_table(const std::vector<NamedRun>& runs);
// The parts of each rank's average step.
TitledTable ranks_table(const NamedRun& run);
// Figures of each GPU of each rank, over the run.
TitledTable gpus_table(const NamedRun& run);
// Versions and host, one column per run.
TitledTable environment_table(const std::vector<NamedRun>& runs);

}  // namespace ddprun::report
