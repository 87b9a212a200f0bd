#include "record/read.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "ddprun/error.hpp"
#include "record/fields.hpp"
#include "record/json_value.hpp"
#include "record/run_dir.hpp"
#include "record/text_lines.hpp"

namespace ddprun::record {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

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

}  // namespace

bool has_summary(const std::string& dir) {
  return fs::exists(file_in(dir, "summary.json"));
}

Summary read_summary(const std::string& dir) {
  const std::string path = file_in(dir, "summary.json");
  if (!has_summary(dir)) {
    throw Error(ExitCode::usage, path + ": missing: the run has not ended, or was killed; its rank<N>.log tells more");
  }
  const json object = parse(text_of(path), path);
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
  return read_lines<EpochRecord>(file_in(dir, "epochs.jsonl"), growing, epoch_of);
}

std::vector<StepRecord> read_steps(const std::string& dir, int rank, bool growing) {
  return read_lines<StepRecord>(file_in(dir, rank_file("steps", rank)), growing, step_of);
}

std::map<std::string, std::string> read_environment(const std::string& dir) {
  const std::string path = file_in(dir, "environment.json");
  const json object = parse(text_of(path), path);
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

bool is_run(const std::string& dir) {
  return fs::is_regular_file(file_in(dir, "config.toml")) && fs::is_regular_file(file_in(dir, rank_file("steps", 0)));
}

Run read_run(const std::string& dir) {
  if (!fs::is_directory(dir)) throw Error(ExitCode::usage, dir + ": no folder of a run");
  Run run;
  run.dir = dir;
  run.config = file_in(dir, "config.toml");
  if (!fs::is_regular_file(run.config)) throw Error(ExitCode::usage, run.config + ": missing: no folder of a run");
  run.summary = read_summary(dir);
  run.epochs = read_epochs(dir);
  const auto ranks = static_cast<int>(std::max<int64_t>(run.summary.world, 1));
  for (int rank = 0; rank < ranks; ++rank) run.steps.push_back(read_steps(dir, rank));
  run.gpus = read_gpus(dir, ranks);
  run.environment = read_environment(dir);
  return run;
}

}  // namespace ddprun::record
