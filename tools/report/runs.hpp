// The charts and tables that compare runs, and the settings in which runs differ. A function of charts or tables
// accepts any number of runs, and returns nothing if none of them has recorded the figures.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/config/experiment.hpp"
#include "tools/lib/run.hpp"
#include "tools/report/chart.hpp"
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

// The parts of the average step that a run has, in seconds and in per cent.
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

// The value of each experiment as TOML, by key, for the keys whose values differ among the experiments that use them.
// "not given": the key has no value; "not used": the experiment's strategy or optimizer does not use it. Without
// experiment.name and experiment.output.
std::map<std::string, std::vector<std::string>> differing_settings(const std::vector<config::Experiment>& experiments);

// "name (value, value)": each value once, in order, and at most four of them.
std::string differing_text(const std::string& name, const std::vector<std::string>& values);

// Whether a host's cores are divided among its ranks or devices, so that fewer of them may have more threads each.
bool divides_cores(const config::Experiment& experiment);

// One step of a run's trace/trace.json, which is in the trace event format of Chrome and Perfetto.
struct TraceEvent {
  std::string name;  // "forward", "backward", "optimizer", "allreduce"; "ready": a bucket had all its gradients
  int64_t rank = 0, step = 0;
  int64_t bucket = -1, bytes = 0;  // of "allreduce" and "ready", if known
  double begin = 0, end = 0;       // microseconds
};

// The events with these names and with args {"step", "bucket", "bytes"}, whose pid is the rank; others are ignored.
// Throws Error(usage) with path and reason if the file is no such trace.
std::vector<TraceEvent> read_trace(const std::string& path);

// Forward, backward and optimizer of the last traced step and the allreduce of each bucket, two lanes per rank; times
// in milliseconds from the start of the step. Returns nothing without a traced forward, as of a PyTorch program.
// Throws as read_trace().
std::optional<Chart> step_timeline(const std::string& run_dir);

}  // namespace ddprun::report
