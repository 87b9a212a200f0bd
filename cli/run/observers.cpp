#include "cli/run/observers.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/file.hpp"
#include "base/log.hpp"
#include "cli/console/console.hpp"
#include "cli/console/progress_bar.hpp"
#include "launch/net/address.hpp"
#include "launch/signals.hpp"
#include "record/event_file.hpp"
#include "record/run_dir.hpp"
#include "train/device/cuda.hpp"
#include "train/loop/data_loader.hpp"
#include "train/loop/parity.hpp"

namespace ddprun::run {
namespace {

// Whether to log a step's line: every `log_every` steps, and after the last step of an epoch.
bool is_line_due(int64_t log_every, int64_t step_of_epoch, int64_t steps_per_epoch) {
  return log_every > 0 && (step_of_epoch % log_every == 0 || step_of_epoch == steps_per_epoch);
}

// Writes step and epoch records, and the state of this rank's CUDA devices whenever a line is logged. A sample takes
// about a millisecond per GPU and does not wait for the GPU. Memory peaks count from here on.
class RecordWriter final : public train::Observer {
 public:
  RecordWriter(std::vector<torch::Device> gpus, record::Recorder& recorder, int64_t log_every)
      : gpus_(std::move(gpus)), recorder_(recorder), log_every_(log_every) {
    for (const torch::Device gpu : gpus_) train::reset_peak_memory(gpu);
  }

  void on_step_end(const record::StepRecord& step, int64_t step_of_epoch, const train::LoopState& state) override {
    recorder_.step(step);
    if (!is_line_due(log_every_, step_of_epoch, state.train.steps())) return;
    for (const torch::Device gpu : gpus_) {
      const train::GpuMemory peak = train::peak_memory(gpu);
      recorder_.gpu({.step = step.step, .device = gpu.index(), .allocated = peak.allocated, .reserved = peak.reserved});
    }
  }

  void on_epoch_end(const record::EpochRecord& record, const train::LoopState&) override { recorder_.epoch(record); }

 private:
  const std::vector<torch::Device> gpus_;
  record::Recorder& recorder_;
  const int64_t log_every_;
};

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// On rank 0, log.tensorboard: an event file of TensorBoard in the run folder, written while the run goes on: scalars
// every `log_every` steps and after the last step of an epoch, and those of each epoch. Each call writes to the file,
// so a killed process loses no more than the steps since then. Throws Error(failure) with path and errno's text if the
// file cannot be written.
class EventWriter final : public train::Observer {
 public:
  EventWriter(const std::string& run_dir, int world, int64_t log_every)
      : of_rank0_(world > 1 ? "_rank0" : ""),
        log_every_(log_every),
        file_(record::file_in(run_dir, record::event_file_name(seconds_since_1970(), launch::host_name()))) {
    file_.write(record::event_file_header(seconds_since_1970()));
  }

  void on_step_end(const record::StepRecord& record, int64_t step_of_epoch, const train::LoopState& state) override {
    if (!is_line_due(log_every_, step_of_epoch, state.train.steps())) return;
    std::string bytes;
    record::Scalars scalars(bytes, seconds_since_1970(), record.step);
    scalars.add("train/loss" + of_rank0_, record.loss);
    scalars.add("train/accuracy" + of_rank0_, record.accuracy);
    scalars.add("train/throughput" + of_rank0_, record.throughput);
    scalars.add("train/lr", record.lr);
    scalars.add("train/loss_scale", record.scale);
    file_.write(bytes);
  }

  void on_epoch_end(const record::EpochRecord& record, const train::LoopState& state) override {
    std::string bytes;
    record::add_epoch({bytes, seconds_since_1970(), state.at.step}, record);
    file_.write(bytes);
  }

 private:
  const std::string of_rank0_;  // ends the names of figures that are not those of all ranks
  const int64_t log_every_;
  OutputFile file_;
};

// On rank 0: the progress bar, and a line for every `log_every` steps and each epoch.
class ConsoleProgress final : public train::Observer {
 public:
  // epochs: of the whole run; 0 if unknown, because the run counts steps.
  ConsoleProgress(int world, int64_t log_every, int64_t epochs)
      : world_(world), log_every_(log_every), epochs_(epochs) {}

  void on_step_end(const record::StepRecord& record, int64_t step_of_epoch, const train::LoopState& state) override {
    const int64_t steps = state.train.steps();
    if (step_of_epoch == 1) line_ = {};
    if (line_.time.all.count == 0) line_.since = step_of_epoch;
    line_.of_rank0 = world_ > 1;
    line_.epoch = record.epoch;
    line_.step = step_of_epoch;
    line_.steps = steps;
    line_.time.update(record.total);
    line_.data.update(record.data);
    if (record.samples > 0) line_.loss.update(record.loss, record.samples);
    if (record.samples > 0 && !std::isnan(record.accuracy)) line_.accuracy.update(record.accuracy, record.samples);
    // Of all epochs; in a run of steps, of this epoch.
    const int64_t steps_left = std::max<int64_t>(epochs_ - record.epoch, 0) * steps + steps - step_of_epoch;
    const double mean_time = line_.time.all.value();
    bar_.show(record.epoch, epochs_, step_of_epoch, steps, line_.loss.all.value(),
              static_cast<double>(record.samples) * world_ / mean_time, mean_time * static_cast<double>(steps_left));
    if (!is_line_due(log_every_, step_of_epoch, steps)) return;
    log::plain(console::step_line(line_));
    for (console::Meter* meter : {&line_.time, &line_.data, &line_.loss, &line_.accuracy}) meter->recent = {};
  }

  void on_epoch_end(const record::EpochRecord& record, const train::LoopState&) override {
    log::plain(console::epoch_line(record));
  }

  void on_fit_end() override { bar_.clear(); }

 private:
  const int world_;
  const int64_t log_every_;
  const int64_t epochs_;
  console::StepLine line_;
  console::ProgressBar bar_;
};

}  // namespace

std::vector<std::unique_ptr<train::Observer>> make_observers(const Assembly& assembly, const launch::World& world,
                                                             const std::vector<train::NamedTensor>& parameters,
                                                             record::Recorder& recorder) {
  const config::Experiment& experiment = assembly.experiment();
  const int64_t log_every = experiment.log.every;
  std::vector<std::unique_ptr<train::Observer>> made;
  if (auto fault = fault_of(experiment.faults, world.rank, parameters)) made.push_back(std::move(fault));
  const auto gpus = assembly.device().is_cuda() ? assembly.devices : std::vector<torch::Device>{};
  made.push_back(std::make_unique<RecordWriter>(gpus, recorder, log_every));
  if (world.rank == 0 && experiment.log.tensorboard) {
    made.push_back(std::make_unique<EventWriter>(recorder.run_dir(), world.size, log_every));
  }
  if (world.rank == 0) {
    made.push_back(std::make_unique<ConsoleProgress>(world.size, log_every, experiment.train.epochs.value_or(0)));
  }
  if (const int64_t steps = experiment.log.parity_steps; steps > 0) {
    made.push_back(std::make_unique<train::ParityLog>(recorder.run_dir(), world.rank, parameters, steps));
  }
  return made;
}

void LauncherLink::on_phase(Phase phase, int64_t step, int bucket) {
  if (progress_.step == 0 && step > 0) launch::defer_stop_signals();
  progress_ = {step, phase, bucket};
  if (table_ != nullptr) table_->set(local_rank_, progress_);
  if (recorder_ != nullptr) recorder_->set_step(step);
}

void LauncherLink::on_step_end(const record::StepRecord& record, int64_t, const train::LoopState&) {
  if (table_ == nullptr || std::isnan(record.comm)) return;
  own_times_[steps_++ % own_times_.size()] = record.total - record.comm;
  if (steps_ < own_times_.size()) return;
  const double shortest = *std::min_element(own_times_.begin(), own_times_.end());
  table_->set_own_us(local_rank_, std::llround(shortest * 1e6));
}

ExitCode LauncherLink::stop_requested() const {
  const ExitCode signal = launch::stop_signal();
  if (signal != ExitCode::ok) return signal;
  return table_ != nullptr && table_->stop_requested() ? ExitCode::terminated : ExitCode::ok;
}

}  // namespace ddprun::run
