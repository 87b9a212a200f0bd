#include "tools/lib/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/file.hpp"
#include "ddprun/error.hpp"
#include "record/fields.hpp"
#include "record/recorder.hpp"
#include "record/run_dir.hpp"
#include "tools/lib/json_value.hpp"
#include "tools/lib/text_lines.hpp"

namespace ddprun::record {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kEnvironmentFile = "environment.json";

json parse(const std::string& text, const std::string& place) {
  try {
    json object = json::parse(text);
    if (!object.is_object()) throw Error(ExitCode::usage, place + ": expected a JSON object");
    return object;
  } catch (const json::parse_error& error) {
    throw Error(ExitCode::usage, fmt::format("{}: not JSON (byte {})", place, error.byte));
  }
}

template <class Record>
std::vector<Record> read_lines(const std::string& path, bool growing,
                               const std::function<Record(const json&, const std::string&)>& record_of) {
  std::vector<Record> records;
  for (const Line& line : lines_of(path, growing)) {
    const std::string place = fmt::format("{}:{}", path, line.number);
    records.push_back(record_of(parse(line.text, place), place));
  }
  return records;
}

template <class Record>
Record flat_record(const json& object, const std::string& place) {
  Record record;
  for_each_field(record, [&](const char* key, auto& member) { read_value(object, key, member, place); });
  return record;
}

StepRecord step_of(const json& object, const std::string& place) {
  for (const char* key : {"epoch", "step", "samples", "total"}) require(object, key, place);
  StepRecord record = flat_record<StepRecord>(object, place);
  if (!is_replayed(record)) return record;
  for_each_field(record, [&](const char* key, auto& member) {
    if constexpr (std::is_same_v<decltype(member), double&>) {
      if (!object.contains(key)) member = kAbsent;
    }
  });
  return record;
}

EpochRecord epoch_of(const json& object, const std::string& place) {
  require(object, "epoch", place);
  return flat_record<EpochRecord>(object, place);
}

GpuRecord gpu_of(const json& object, const std::string& place) {
  for (const char* key : {"step", "device"}) require(object, key, place);
  return flat_record<GpuRecord>(object, place);
}

TensorDigest print_of(const json& object, const char* key, const std::string& place) {
  const json& print = require(object, key, place);
  const std::string inside = place + ": " + key;
  TensorDigest result;
  for (const char* part : {"hash", "norm", "sketch"}) require(print, part, inside);
  read_value(print, "hash", result.hash, inside);
  read_value(print, "norm", result.norm, inside);
  read_value(print, "sketch", result.sketch, inside);
  return result;
}

ParityRecord parity_of(const json& object, const std::string& place) {
  for (const char* key : {"step", "parameter", "elements"}) require(object, key, place);
  ParityRecord record;
  read_value(object, "step", record.step, place);
  read_value(object, "parameter", record.parameter, place);
  read_value(object, "elements", record.elements, place);
  record.gradient = print_of(object, "gradient", place);
  record.value = print_of(object, "value", place);
  if (object.contains("ulp")) {
    read_value(object.at("ulp"), "max", record.ulp_max, place + ": ulp");
    read_value(object.at("ulp"), "mean", record.ulp_mean, place + ": ulp");
  }
  return record;
}

std::string rank_file(const std::string& what, int rank) {
  return fmt::format("{}-rank{}.jsonl", what, rank);
}

// A file that either all ranks have or none.
template <class Record>
std::vector<std::vector<Record>> read_ranks(const std::string& dir, const std::string& what, int ranks,
                                            const std::function<Record(const json&, const std::string&)>& record_of) {
  std::vector<std::vector<Record>> by_rank;
  if (!fs::exists(file_in(dir, rank_file(what, 0)))) return by_rank;
  for (int rank = 0; rank < ranks; ++rank) {
    by_rank.push_back(read_lines<Record>(file_in(dir, rank_file(what, rank)), false, record_of));
  }
  return by_rank;
}

// Of a run without a summary: the ranks from 0 that have a file.
template <class Record>
std::vector<std::vector<Record>> read_growing(const std::string& dir, const std::string& what,
                                              const std::function<Record(const json&, const std::string&)>& record_of) {
  std::vector<std::vector<Record>> by_rank;
  for (int rank = 0; fs::exists(file_in(dir, rank_file(what, rank))); ++rank) {
    by_rank.push_back(read_lines<Record>(file_in(dir, rank_file(what, rank)), true, record_of));
  }
  return by_rank;
}

Run run_in(const std::string& dir) {
  Run run;
  run.dir = dir;
  run.config = file_in(dir, "config.toml");
  if (!fs::is_regular_file(run.config)) throw Error(ExitCode::usage, no_run(dir));
  return run;
}

Summary summary_so_far(const Run& run) {
  Summary summary;
  const auto steps = static_cast<int64_t>(run.steps[0].size());
  if (steps > 0) {
    RunTotals totals;
    double samples = 0;
    for (const StepRecord& step : run.steps[0]) {
      totals.add(step);
      totals.seconds += step.total;
    }
    for (const auto& rank : run.steps) {
      for (const StepRecord& step : rank) samples += static_cast<double>(step.samples);
    }
    summary = totals.summary(steps, samples);
    if (totals.sums.comm > 0) summary.split.comm = totals.sums.comm / static_cast<double>(steps);
  }
  summary.steps = steps;
  summary.world = static_cast<int64_t>(run.steps.size());
  if (run.epochs.empty()) return summary;
  const EpochRecord& last = run.epochs.back();
  summary.epochs = last.epoch;
  summary.test_accuracy = last.test_accuracy;
  summary.test_loss = last.test_loss;
  summary.validation_accuracy = last.validation_accuracy;
  summary.validation_loss = last.validation_loss;
  summary.train_loss = last.train_loss;
  return summary;
}

}  // namespace

bool has_summary(const std::string& dir) {
  return fs::exists(file_in(dir, "summary.json"));
}

Summary read_summary(const std::string& dir) {
  const std::string path = file_in(dir, "summary.json");
  if (!has_summary(dir)) {
    throw Error(ExitCode::usage, path + ": missing: the run has not ended, or was killed; its rank<N>.log tells more");
  }
  const json object = parse(read_text(path), path);
  Summary summary = flat_record<Summary>(object, path);
  constexpr std::string_view kLearned = "learned.";
  for (const auto& [key, value] : object.items()) {
    if (!key.starts_with(kLearned)) continue;
    summary.learned.emplace_back(key.substr(kLearned.size()), kAbsent);
    read_value(object, key, summary.learned.back().second, path);
  }
  return summary;
}

std::vector<EpochRecord> read_epochs(const std::string& dir, bool growing) {
  return read_lines<EpochRecord>(file_in(dir, kEpochsFile), growing, epoch_of);
}

std::vector<StepRecord> read_steps(const std::string& dir, int rank, bool growing) {
  return read_lines<StepRecord>(file_in(dir, rank_file("steps", rank)), growing, step_of);
}

std::map<std::string, std::string> read_environment(const std::string& dir) {
  const std::string path = file_in(dir, kEnvironmentFile);
  const json object = parse(read_text(path), path);
  std::map<std::string, std::string> environment;
  for (const auto& [key, value] : object.items()) {
    environment[key] = value.is_string() ? value.get<std::string>() : value.dump();
  }
  return environment;
}

std::vector<std::vector<ParityRecord>> read_parity(const std::string& dir, int ranks) {
  return read_ranks<ParityRecord>(dir, "parity", ranks, parity_of);
}

std::vector<std::vector<GpuRecord>> read_gpus(const std::string& dir, int ranks) {
  return read_ranks<GpuRecord>(dir, "gpus", ranks, gpu_of);
}

Run read_run(const std::string& dir) {
  Run run = run_in(dir);
  run.summary = read_summary(dir);
  run.epochs = read_epochs(dir);
  const auto ranks = static_cast<int>(std::max<int64_t>(run.summary.world, 1));
  for (int rank = 0; rank < ranks; ++rank) run.steps.push_back(read_steps(dir, rank));
  run.gpus = read_gpus(dir, ranks);
  run.environment = read_environment(dir);
  return run;
}

Run read_run_so_far(const std::string& dir) {
  Run run = run_in(dir);
  const bool under_way = is_under_way(dir);
  if (has_summary(dir)) return read_run(dir);  // also if the run has just ended
  run.state = under_way ? RunState::under_way : RunState::ended_without_summary;
  run.steps = read_growing<StepRecord>(dir, "steps", step_of);
  run.steps.resize(std::max<std::size_t>(run.steps.size(), 1));
  const auto shorter = [](const auto& a, const auto& b) { return a.size() < b.size(); };
  const std::size_t common = std::min_element(run.steps.begin(), run.steps.end(), shorter)->size();
  for (auto& rank : run.steps) rank.resize(common);
  run.gpus = read_growing<GpuRecord>(dir, "gpus", gpu_of);
  if (fs::exists(file_in(dir, kEpochsFile))) run.epochs = read_epochs(dir, true);
  if (fs::exists(file_in(dir, kEnvironmentFile))) run.environment = read_environment(dir);
  run.summary = summary_so_far(run);
  return run;
}

const std::vector<StepRecord>& slowest_rank(const Run& run, std::size_t first) {
  return *std::ranges::max_element(run.steps, {}, [&](const std::vector<StepRecord>& steps) {
    double seconds = 0;
    for (std::size_t i = first; i < steps.size(); ++i) seconds += steps[i].total;
    return seconds;
  });
}

std::string load_at_start(const Run& run) {
  const auto load = run.environment.find("load");
  return load == run.environment.end() ? "" : load->second.substr(0, load->second.find(' '));
}

std::string state_of(const Run& run) {
  if (run.state == RunState::complete) return "";
  const std::vector<StepRecord>& steps = run.steps.at(0);
  return (run.state == RunState::under_way ? "the run is under way: " : "the run ended without a summary: ") +
         (steps.empty() ? "no step is recorded yet" : fmt::format("its figures go to step {}", steps.back().step));
}

}  // namespace ddprun::record
