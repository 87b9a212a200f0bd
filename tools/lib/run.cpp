#include "tools/lib/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "base/file.hpp"
#include "ddprun/error.hpp"
#include "record/fields.hpp"
#include "record/recorder.hpp"
#include "record/run_dir.hpp"
#include "tools/lib/json_value.hpp"

namespace ddprun::tools {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using record::EpochRecord, record::GpuRecord, record::ParityRecord, record::StepRecord;
using record::file_in, record::kAbsent;
using record::Summary, record::TensorDigest;

constexpr const char* kEnvironmentFile = "environment.json";
constexpr const char* kEpochsFile = "epochs.jsonl";

json parse(const std::string& text, const std::string& place) {
  try {
    json object = json::parse(text);
    if (!object.is_object()) throw Error(ExitCode::usage, place + ": expected a JSON object");
    return object;
  } catch (const json::parse_error& error) {
    throw Error(ExitCode::usage, fmt::format("{}: not JSON (byte {})", place, error.byte));
  }
}

// The lines without newlines. A last line without newline is an error; with `growing` it is ignored.
std::vector<std::string> lines_of(const std::string& path, bool growing) {
  std::istringstream text(read_text(path));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) {
    if (!text.eof()) {
      lines.push_back(line);
    } else if (!growing) {
      throw Error(ExitCode::usage, fmt::format("{}:{}: the line is cut short: the run was killed, or its disk was full",
                                               path, lines.size() + 1));
    }
  }
  return lines;
}

// Those without which a record means nothing.
template <class Record>
constexpr std::initializer_list<const char*> kRequired = {};
template <>
constexpr std::initializer_list<const char*> kRequired<StepRecord> = {"epoch", "step", "samples", "total"};
template <>
constexpr std::initializer_list<const char*> kRequired<EpochRecord> = {"epoch"};
template <>
constexpr std::initializer_list<const char*> kRequired<GpuRecord> = {"step", "device"};
template <>
constexpr std::initializer_list<const char*> kRequired<ParityRecord> = {"step", "parameter", "elements"};
template <>
constexpr std::initializer_list<const char*> kRequired<TensorDigest> = {"hash", "norm", "sketch"};

template <class Record>
void read(const json& object, Record& record, const std::string& place) {
  for (const char* key : kRequired<Record>) require(object, key, place);
  for_each_field(record, [&](const char* key, auto& member) {
    if constexpr (std::same_as<decltype(member), TensorDigest&>) {
      read(require(object, key, place), member, place + ": " + key);
    } else {
      read_value(object, key, member, place);
    }
  });
}

template <class Record>
std::vector<Record> read_lines(const std::string& path, bool growing) {
  std::vector<Record> records;
  for (const std::string& line : lines_of(path, growing)) {
    const std::string place = fmt::format("{}:{}", path, records.size() + 1);
    read(parse(line, place), records.emplace_back(), place);
  }
  return records;
}

std::string rank_file(const std::string& dir, const std::string& what, int rank) {
  return file_in(dir, fmt::format("{}-rank{}.jsonl", what, rank));
}

// By rank. A run has such a file for each of its ranks, or for none. Without `ranks`, as in a run without a summary:
// the ranks from 0 that have a file, which may still grow.
template <class Record>
std::vector<std::vector<Record>> read_ranks(const std::string& dir, const std::string& what, std::optional<int> ranks) {
  std::vector<std::vector<Record>> by_rank;
  const auto is_there = [&](int rank) { return fs::exists(rank_file(dir, what, rank)); };
  for (int rank = 0; is_there(0) && (ranks ? rank < *ranks : is_there(rank)); ++rank) {
    by_rank.push_back(read_lines<Record>(rank_file(dir, what, rank), !ranks));
  }
  return by_rank;
}

bool has_summary(const std::string& dir) {
  return fs::exists(file_in(dir, "summary.json"));
}

Run run_in(const std::string& dir) {
  Run run;
  run.dir = dir;
  run.config = file_in(dir, "config.toml");
  if (!fs::is_regular_file(run.config)) throw Error(ExitCode::usage, record::no_run(dir));
  return run;
}

double samples_of(const Run& run) {
  double samples = 0;
  for (const auto& rank : run.steps) {
    for (const StepRecord& step : rank) samples += static_cast<double>(step.samples);
  }
  return samples;
}

Summary summary_so_far(const Run& run) {
  Summary summary;
  const auto steps = static_cast<int64_t>(run.steps[0].size());
  if (steps > 0) {
    record::RunTotals totals;
    for (const StepRecord& step : run.steps[0]) {
      totals.add(step);
      totals.seconds += step.total;
    }
    summary = totals.summary(steps, samples_of(run));
    if (totals.sums.comm > 0) summary.split.comm = totals.sums.comm / static_cast<double>(steps);
  }
  summary.steps = steps;
  summary.world = static_cast<int64_t>(run.steps.size());
  if (run.epochs.empty()) return summary;
  const EpochRecord& last = run.epochs.back();
  summary.epochs = last.epoch;
  static_cast<record::Metrics&>(summary) = last;
  return summary;
}

}  // namespace

Summary read_summary(const std::string& dir) {
  const std::string path = file_in(dir, "summary.json");
  if (!has_summary(dir)) {
    throw Error(ExitCode::usage, path + ": missing: the run has not ended, or was killed; see its rank<N>.log");
  }
  const json object = parse(read_text(path), path);
  Summary summary;
  read(object, summary, path);
  constexpr std::string_view kLearned = "learned.";
  for (const auto& [key, value] : object.items()) {
    if (!key.starts_with(kLearned)) continue;
    summary.learned.emplace_back(key.substr(kLearned.size()), kAbsent);
    read_value(object, key, summary.learned.back().second, path);
  }
  return summary;
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
  return read_ranks<ParityRecord>(dir, "parity", ranks);
}

std::vector<std::vector<GpuRecord>> read_gpus(const std::string& dir, int ranks) {
  return read_ranks<GpuRecord>(dir, "gpus", ranks);
}

Run read_run(const std::string& dir) {
  Run run = run_in(dir);
  run.summary = read_summary(dir);
  run.epochs = read_lines<EpochRecord>(file_in(dir, kEpochsFile), false);
  const auto ranks = static_cast<int>(std::max<int64_t>(run.summary.world, 1));
  for (int rank = 0; rank < ranks; ++rank) {
    run.steps.push_back(read_lines<StepRecord>(rank_file(dir, "steps", rank), false));
  }
  run.gpus = read_gpus(dir, ranks);
  run.environment = read_environment(dir);
  const double samples = samples_of(run);
  // A rank of a recorded program does not know the samples of the others.
  if (std::isnan(run.summary.throughput) && samples > 0) run.summary.throughput = samples / run.summary.total_time;
  return run;
}

Run read_run_so_far(const std::string& dir) {
  Run run = run_in(dir);
  if (has_summary(dir)) return read_run(dir);
  run.has_summary = false;
  run.steps = read_ranks<StepRecord>(dir, "steps", std::nullopt);
  run.steps.resize(std::max<std::size_t>(run.steps.size(), 1));
  const std::size_t common = std::ranges::min_element(run.steps, {}, &std::vector<StepRecord>::size)->size();
  for (auto& rank : run.steps) rank.resize(common);
  run.gpus = read_ranks<GpuRecord>(dir, "gpus", std::nullopt);
  if (fs::exists(file_in(dir, kEpochsFile))) run.epochs = read_lines<EpochRecord>(file_in(dir, kEpochsFile), true);
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
  if (run.has_summary) return "";
  const std::vector<StepRecord>& steps = run.steps.at(0);
  return "the run is under way or ended without a summary: " +
         (steps.empty() ? "no step is recorded yet" : fmt::format("its figures go to step {}", steps.back().step));
}

}  // namespace ddprun::tools
