// The charts and tables of runs side by side. Each function takes any number of runs, and gives nothing for what none
// of them has recorded.
#pragma once

#include <string>
#include <vector>

#include "record/read.hpp"
#include "tools/report/page.hpp"

namespace ddprun::report {

struct NamedRun {
  std::string name;  // in legends and tables; no two alike
  record::Run run;
};

// Named by their folders, without the time in it where they differ without.
std::vector<NamedRun> named(std::vector<record::Run> runs);

// Loss and accuracy by epoch, loss by step, and the learning rate where it changes. Of one run, training and test are
// two lines of a chart; of several, a line a run.
std::vector<Chart> learning_charts(const std::vector<NamedRun>& runs);

// Step time over steps, and its distribution: of one run, a line a rank; of several, of each the slowest rank's.
std::vector<Chart> step_time_charts(const std::vector<NamedRun>& runs);

// The average step in its parts, in seconds and in per cent.
std::vector<Chart> split_charts(const std::vector<NamedRun>& runs);

// Strategy dp: its four parts of communication, and the memory of each device.
std::vector<Chart> device_charts(const std::vector<NamedRun>& runs);

// Throughput over ranks (dp: devices) against the line that the fewest ranks promise: one for each model and data set
// that runs of several sizes share.
std::vector<Chart> scaling_charts(const std::vector<NamedRun>& runs);

// A run in one sentence.
std::string summary_sentence(const NamedRun& run);

// Settings and results, a column a run.
TitledTable results_table(const std::vector<NamedRun>& runs);
// Each rank's average step in its parts.
TitledTable ranks_table(const NamedRun& run);
// What each GPU of each rank was at, over the run.
TitledTable gpus_table(const NamedRun& run);
// Versions and host, a column a run.
TitledTable environment_table(const std::vector<NamedRun>& runs);

// At most `most` points: from windows of equal length, the median of each. Sets `window` to the length, 1 where all
// points are kept.
std::vector<Point> thinned(const std::vector<Point>& points, std::size_t most, std::size_t& window);

}  // namespace ddprun::report
