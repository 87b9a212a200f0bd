#include "tools/export/export.hpp"

#include <boost/algorithm/string/join.hpp>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <map>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/file.hpp"
#include "base/log.hpp"
#include "ddprun/error.hpp"
#include "record/event_file.hpp"
#include "record/fields.hpp"

namespace ddprun::exporter {
namespace {

namespace fs = std::filesystem;
using record::EpochRecord;
using record::Scalars;
using record::StepRecord;

std::string of_environment(const tools::Run& run, const char* key) {
  const auto found = run.environment.find(key);
  return found == run.environment.end() ? "" : found->second;
}

// The run's start in seconds since 1970; 0 if its environment does not have it.
double begin_of(const tools::Run& run) {
  std::tm local{};
  const std::string date = of_environment(run, "date");
  if (strptime(date.c_str(), "%Y-%m-%dT%H:%M:%S%z", &local) == nullptr) return 0;
  const long offset = local.tm_gmtoff;
  return static_cast<double>(timegm(&local) - offset);
}

// The same step of all ranks.
struct Step {
  const StepRecord* slowest = nullptr;
  double loss = 0, correct = 0, samples = 0;  // of all ranks; the loss is a mean
};

Step step_of(const tools::Run& run, std::size_t index) {
  Step step;
  for (const auto& rank : run.steps) {
    if (index >= rank.size()) continue;
    const StepRecord& record = rank[index];
    if (step.slowest == nullptr || record.total > step.slowest->total) step.slowest = &record;
    if (record.samples == 0) continue;
    step.loss += record.loss * static_cast<double>(record.samples);
    step.correct += record.correct;
    step.samples += static_cast<double>(record.samples);
  }
  step.loss /= step.samples;
  return step;
}

void add_step(Scalars scalars, const Step& step) {
  scalars.add("train/loss", step.loss);
  scalars.add("train/accuracy", step.correct / step.samples);
  scalars.add("train/throughput", step.samples / step.slowest->total);
  scalars.add("train/lr", step.slowest->lr);
  scalars.add("train/loss_scale", step.slowest->scale);
  scalars.add("time/total", step.slowest->total);
  scalars.add("time/data", step.slowest->data);
  scalars.add("time/forward", step.slowest->forward);
  scalars.add("time/backward", step.slowest->backward);
  scalars.add("time/comm", step.slowest->comm);
  scalars.add("time/optimizer", step.slowest->optimizer);
  scalars.add("time/graph", step.slowest->graph);
}

std::string write(const fs::path& path, const std::string& content) {
  replace_file(path.string(), content);
  return path.string();
}

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw_file_error("create folder", folder.string(), error.value());
}

// The shortest text that reads back as the same number; "" for a figure that was not measured.
template <class Number>
std::string text_of(Number value) {
  if (std::is_same_v<Number, int64_t> ? value < 0 : !std::isfinite(value)) return "";
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

using Fields = std::vector<std::string>;

// `fields`, then one of each member. A list does not fit into a field.
template <class Record, class Make>
Fields fields_of(const Record& record, Fields fields, Make make) {
  record::for_each_field(record, [&](const char* key, const auto& value) {
    if constexpr (!std::is_same_v<decltype(value), const std::vector<double>&>) fields.push_back(make(key, value));
  });
  return fields;
}

// Only names and numbers, without commas or quotes: no field needs quotes.
std::string line_of(const Fields& fields) {
  const std::string comma = ",";  // GCC 12 warns of a literal here
  return boost::algorithm::join(fields, comma) + "\r\n";
}

template <class Record>
std::string names_of(const Fields& first = {}) {
  return line_of(fields_of(Record(), first, [](const char* key, const auto&) { return key; }));
}

template <class Record>
std::string values_of(const Record& record, const Fields& first = {}) {
  return line_of(fields_of(record, first, [](const char*, const auto& value) { return text_of(value); }));
}

}  // namespace

std::string event_file(const tools::Run& run) {
  double time = begin_of(run);
  std::string bytes = record::event_file_header(time);
  struct Moment {
    double time = 0;
    int64_t step = 0;
  };
  std::map<int64_t, Moment> ends;  // of epochs
  const std::size_t steps = run.steps.empty() ? 0 : run.steps[0].size();
  for (std::size_t i = 0; i < steps; ++i) {
    const Step step = step_of(run, i);
    time += step.slowest->total;
    add_step({bytes, time, step.slowest->step}, step);
    ends[step.slowest->epoch] = {time, step.slowest->step};
  }
  for (const EpochRecord& epoch : run.epochs) {
    const Moment end = ends[epoch.epoch];
    record::add_epoch({bytes, end.time, end.step}, epoch);
  }
  return bytes;
}

std::vector<std::string> export_run(const ExportRequest& request) {
  if (request.csv.empty() && request.tensorboard.empty()) {
    throw Error(ExitCode::usage, "ddprun export: expected --csv FILE, --tensorboard DIR or both");
  }
  const tools::Run run = tools::read_run_so_far(request.run);
  if (const std::string state = tools::state_of(run); !state.empty()) log::always(request.run + ": " + state);
  std::vector<std::string> paths;
  if (fs::is_directory(request.csv)) {
    paths.push_back(write(fs::path(request.csv) / "steps.csv", steps_csv(run)));
    paths.push_back(write(fs::path(request.csv) / "epochs.csv", epochs_csv(run)));
  } else if (!request.csv.empty()) {
    paths.push_back(write(request.csv, steps_csv(run)));
  }
  if (!request.tensorboard.empty()) {
    make_folder(request.tensorboard);
    paths.push_back(
        write(fs::path(request.tensorboard) / record::event_file_name(begin_of(run), of_environment(run, "host")),
              event_file(run)));
  }
  return paths;
}

std::string steps_csv(const tools::Run& run) {
  std::string text = names_of<StepRecord>({"rank"});
  for (std::size_t rank = 0; rank < run.steps.size(); ++rank) {
    for (const StepRecord& step : run.steps[rank]) text += values_of(step, {std::to_string(rank)});
  }
  return text;
}

std::string epochs_csv(const tools::Run& run) {
  std::string text = names_of<EpochRecord>();
  for (const EpochRecord& epoch : run.epochs) text += values_of(epoch);
  return text;
}

}  // namespace ddprun::exporter
