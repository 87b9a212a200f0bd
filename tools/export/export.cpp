#include "tools/export/export.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <map>
#include <system_error>

#include "base/file.hpp"
#include "ddprun/error.hpp"
#include "tools/export/csv.hpp"
#include "tools/export/event_file.hpp"

namespace ddprun::exporter {
namespace {

namespace fs = std::filesystem;
using record::EpochRecord;
using record::StepRecord;

std::string of_environment(const record::Run& run, const char* key) {
  const auto found = run.environment.find(key);
  return found == run.environment.end() ? "" : found->second;
}

// The run's start in seconds since 1970; 0 if its environment does not have it.
double begin_of(const record::Run& run) {
  std::tm local{};
  const std::string date = of_environment(run, "date");
  if (strptime(date.c_str(), "%Y-%m-%dT%H:%M:%S%z", &local) == nullptr) return 0;
  const long offset = local.tm_gmtoff;
  return static_cast<double>(timegm(&local) - offset);
}

// The same step of all ranks.
struct Step {
  const StepRecord* slowest = nullptr;
  double loss = 0;  // mean over the samples of all ranks
};

Step step_of(const record::Run& run, std::size_t index) {
  Step step;
  double samples = 0;
  for (const auto& rank : run.steps) {
    if (index >= rank.size()) continue;
    const StepRecord& record = rank[index];
    if (step.slowest == nullptr || record.total > step.slowest->total) step.slowest = &record;
    step.loss += record.loss * static_cast<double>(record.samples);
    samples += static_cast<double>(record.samples);
  }
  step.loss /= samples;
  return step;
}

struct Moment {
  double time = 0;
  int64_t step = 0;
};

// The scalars measured at one time.
class Scalars {
 public:
  Scalars(EventFile& file, Moment moment) : file_(file), moment_(moment) {}

  void add(std::string_view tag, double value) {
    if (std::isfinite(value)) file_.scalar(moment_.time, moment_.step, tag, value);
  }

 private:
  EventFile& file_;
  Moment moment_;
};

void add_step(Scalars scalars, const Step& step) {
  scalars.add("train/loss", step.loss);
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

void add_epoch(Scalars scalars, const EpochRecord& epoch) {
  scalars.add("epoch/train_loss", epoch.train_loss);
  scalars.add("epoch/train_accuracy", epoch.train_accuracy);
  scalars.add("epoch/test_loss", epoch.test_loss);
  scalars.add("epoch/test_accuracy", epoch.test_accuracy);
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

// "events.out.tfevents.1763772608.host", the name that TensorBoard expects: the same for each export of a run.
std::string event_file_name(const record::Run& run) {
  std::string host = of_environment(run, "host");
  std::replace(host.begin(), host.end(), '/', '-');
  return fmt::format("events.out.tfevents.{:010}.{}", static_cast<int64_t>(begin_of(run)), host);
}

}  // namespace

std::string event_file(const record::Run& run) {
  double time = begin_of(run);
  EventFile file(time);
  std::map<int64_t, Moment> ends;  // of epochs
  const std::size_t steps = run.steps.empty() ? 0 : run.steps[0].size();
  for (std::size_t i = 0; i < steps; ++i) {
    const Step step = step_of(run, i);
    time += step.slowest->total;
    const Moment moment{time, step.slowest->step};
    add_step({file, moment}, step);
    ends[step.slowest->epoch] = moment;
  }
  for (const EpochRecord& epoch : run.epochs) add_epoch({file, ends[epoch.epoch]}, epoch);
  return file.bytes();
}

std::vector<std::string> export_run(const ExportRequest& request) {
  if (request.csv.empty() && request.tensorboard.empty()) {
    throw Error(ExitCode::usage, "ddprun export: expected --csv FILE, --tensorboard DIR or both");
  }
  const record::Run run = record::read_run(request.run);
  std::vector<std::string> paths;
  if (fs::is_directory(request.csv)) {
    paths.push_back(write(fs::path(request.csv) / "steps.csv", steps_csv(run)));
    paths.push_back(write(fs::path(request.csv) / "epochs.csv", epochs_csv(run)));
  } else if (!request.csv.empty()) {
    paths.push_back(write(request.csv, steps_csv(run)));
  }
  if (!request.tensorboard.empty()) {
    make_folder(request.tensorboard);
    paths.push_back(write(fs::path(request.tensorboard) / event_file_name(run), event_file(run)));
  }
  return paths;
}

}  // namespace ddprun::exporter
