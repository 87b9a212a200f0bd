#include "tools/predict/recording.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "cli/config/experiment.hpp"
#include "ddprun/error.hpp"
#include "record/run_dir.hpp"
#include "tools/lib/run.hpp"
#include "tools/lib/statistics.hpp"
#include "tools/report/runs.hpp"

namespace ddprun::predict {
namespace {

constexpr int64_t kFirstSteps = 2;   // they touch new memory, and have one bucket
constexpr std::size_t kFewest = 10;  // steps

[[noreturn]] void refuse(const std::string& run_dir, const std::string& reason) {
  throw Error(ExitCode::usage, run_dir + ": " + reason);
}

// A traced step of one rank.
struct Traced {
  double backward_begin = 0, backward_end = 0;  // of the last micro-batch
  double backwards = 0;                         // micro-batches
  std::map<int64_t, double> ready, bytes;       // by bucket

  bool is_complete() const { return backwards > 0 && !ready.empty() && ready.size() == bytes.size(); }
  double remaining(int64_t bucket) const {
    const double left = (backward_end - ready.at(bucket)) / (backward_end - backward_begin);
    return std::clamp(left, 0.0, 1.0) / backwards;
  }
};

std::map<std::pair<int64_t, int64_t>, Traced> traced_steps(const std::vector<report::TraceEvent>& events) {
  std::map<std::pair<int64_t, int64_t>, Traced> found;
  for (const report::TraceEvent& event : events) {
    Traced& traced = found[{event.step, event.rank}];
    if (event.name == "ready") traced.ready[event.bucket] = event.begin;
    if (event.bytes > 0) traced.bytes[event.bucket] = static_cast<double>(event.bytes);
    if (event.name != "backward") continue;
    ++traced.backwards;
    if (event.begin < traced.backward_begin) continue;
    traced.backward_begin = event.begin;
    traced.backward_end = event.end;
  }
  return found;
}

std::vector<Bucket> buckets_of(const std::string& run_dir, const std::vector<report::TraceEvent>& events) {
  std::vector<Traced> complete;
  for (const auto& [step_and_rank, traced] : traced_steps(events)) {
    if (step_and_rank.first > kFirstSteps && traced.is_complete()) complete.push_back(traced);
  }
  if (complete.empty()) {
    refuse(run_dir, "the trace does not say when buckets were full; trace a step after the second one, on CPUs");
  }
  std::vector<Bucket> buckets;
  for (const auto& [bucket, bytes] : complete.back().bytes) {
    std::vector<double> remaining;
    for (const Traced& traced : complete) {
      if (traced.ready.contains(bucket)) remaining.push_back(traced.remaining(bucket));
    }
    buckets.push_back({bytes, tools::median(remaining)});
  }
  return buckets;
}

StepParts parts_of(const record::StepRecord& step) {
  const double other = step.total - step.data - step.forward - step.backward - step.comm - step.optimizer;
  return {step.data + step.forward, step.backward, step.optimizer + std::max(0.0, other)};
}

std::vector<StepParts> steps_of(const tools::Run& run, const std::set<int64_t>& traced) {
  std::vector<StepParts> steps;
  for (const auto& of_rank : run.steps) {
    if (of_rank.size() != run.steps[0].size()) refuse(run.dir, "has ranks with different numbers of steps");
  }
  for (std::size_t i = 0; i < run.steps[0].size(); ++i) {
    const int64_t number = run.steps[0][i].step;
    if (number <= kFirstSteps || traced.contains(number)) continue;
    StepParts slowest;
    for (const auto& of_rank : run.steps) {
      const StepParts parts = parts_of(of_rank.at(i));
      if (parts.total() > slowest.total()) slowest = parts;
    }
    steps.push_back(slowest);
  }
  if (steps.size() < kFewest) {
    refuse(run.dir, "has " + std::to_string(steps.size()) + " steps that count, without the first " +
                        std::to_string(kFirstSteps) + " and the traced ones; record at least " +
                        std::to_string(kFewest));
  }
  return steps;
}

}  // namespace

StepParts typical_of(const std::vector<StepParts>& steps) {
  const auto median_of = [&](auto member) { return tools::median(tools::each(steps, member)); };
  const StepParts parts = {median_of(&StepParts::forward), median_of(&StepParts::backward),
                           median_of(&StepParts::optimizer)};
  return parts.times(median_of(&StepParts::total) / parts.total());
}

Recording read_recording(const std::string& run_dir) {
  if (!record::is_run(run_dir)) throw Error(ExitCode::usage, record::no_run(run_dir));
  const tools::Run run = tools::read_run(run_dir);
  const record::Summary& summary = run.summary;
  if (summary.strategy != "ddp") {
    refuse(run_dir,
           "strategy \"" + summary.strategy + "\" sends no gradients; record a run with strategy.kind = \"ddp\"");
  }
  const config::Experiment experiment = config::load(run.config, {}).experiment;
  if (experiment.strategy.zero != 0) {
    refuse(run_dir,
           "strategy.zero sends parameters after the optimizer, which a prediction does not have; record a run "
           "with strategy.zero = 0");
  }
  const std::string trace = (std::filesystem::path(run_dir) / "trace" / "trace.json").string();
  if (!std::filesystem::exists(trace)) {
    refuse(run_dir, run.environment.contains("program")
                        ? "has no trace of a step, as only PyTorch programs on CPUs have; see docs/predicting.md"
                        : "has no trace of a step; record the run with --set log.trace_steps=[5,10]");
  }
  const std::vector<report::TraceEvent> events = report::read_trace(trace);
  std::set<int64_t> traced;
  for (const report::TraceEvent& event : events) traced.insert(event.step);
  Recording recording;
  recording.name = summary.model + ", " + summary.data;
  recording.buckets = buckets_of(run_dir, events);
  recording.steps = steps_of(run, traced);
  for (const record::StepRecord& step : run.steps[0]) {
    recording.samples = std::max(recording.samples, static_cast<double>(step.samples));
  }
  recording.is_checked = experiment.comm.check == "fingerprint";
  return recording;
}

Replayed replay(const StepParts& parts, const std::vector<Bucket>& buckets, const std::vector<double>& allreduce) {
  double over = 0;  // all allreduces so far, in seconds from the start of backward
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    over = std::max(over, (1 - buckets[i].remaining) * parts.backward) + allreduce[i];
  }
  const double exposed = std::max(0.0, over - parts.backward);
  return {parts.total() + exposed, exposed};
}

}  // namespace ddprun::predict
