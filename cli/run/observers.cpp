#include "cli/run/observers.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/file.hpp"
#include "launch/net/address.hpp"
#include "launch/signals.hpp"
#include "record/event_file.hpp"
#include "record/run_dir.hpp"
#include "train/device/cuda.hpp"
#include "train/loop/data_loader.hpp"

namespace ddprun::run {
namespace {

class RecordWriter final : public train::Observer {
 public:
  explicit RecordWriter(record::Recorder& recorder) : recorder_(recorder) {}
  void on_step_end(const record::StepRecord& record, int64_t, const train::LoopState&) override {
    recorder_.step(record);
  }
  void on_epoch_end(const record::EpochRecord& record, const train::LoopState&) override { recorder_.epoch(record); }

 private:
  record::Recorder& recorder_;
};

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

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

class GpuWatch final : public train::Observer {
 public:
  GpuWatch(const std::vector<torch::Device>& gpus, record::Recorder& recorder, int64_t log_every)
      : gpus_(gpus), recorder_(recorder), log_every_(log_every) {
    for (const torch::Device gpu : gpus_) train::reset_peak_memory(gpu);
  }

  void on_step_end(const record::StepRecord& step, int64_t step_of_epoch, const train::LoopState& state) override {
    if (!is_line_due(log_every_, step_of_epoch, state.train.steps())) return;
    for (const torch::Device gpu : gpus_) {
      const train::GpuMemory peak = train::peak_memory(gpu);
      record::GpuRecord record;
      record.step = step.step;
      record.device = gpu.index();
      record.allocated = peak.allocated;
      record.reserved = peak.reserved;
      recorder_.gpu(record);
    }
  }

 private:
  const std::vector<torch::Device> gpus_;
  record::Recorder& recorder_;
  const int64_t log_every_;
};

}  // namespace

std::unique_ptr<train::Observer> record_writer(record::Recorder& recorder) {
  return std::make_unique<RecordWriter>(recorder);
}

std::unique_ptr<train::Observer> event_writer(const std::string& run_dir, int world, int64_t log_every) {
  return std::make_unique<EventWriter>(run_dir, world, log_every);
}

std::unique_ptr<train::Observer> gpu_watch(const std::vector<torch::Device>& gpus, record::Recorder& recorder,
                                           int64_t log_every) {
  return std::make_unique<GpuWatch>(gpus, recorder, log_every);
}

bool is_line_due(int64_t log_every, int64_t step_of_epoch, int64_t steps_per_epoch) {
  return log_every > 0 && (step_of_epoch % log_every == 0 || step_of_epoch == steps_per_epoch);
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
