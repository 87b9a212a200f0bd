// The command's callbacks: records, console output, and the launcher's progress table.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "cli/console/console.hpp"
#include "cli/console/progress_bar.hpp"
#include "cli/run/long_work.hpp"
#include "comm/flight_recorder.hpp"
#include "ddprun/error.hpp"
#include "launch/progress.hpp"
#include "record/recorder.hpp"
#include "train/loop/callback.hpp"

namespace ddprun::run {

// Whether to log a step's line: every `log_every` steps, and after the last step of an epoch.
bool is_line_due(int64_t log_every, int64_t step_of_epoch, int64_t steps_per_epoch);

// Writes step and epoch records. The recorder must outlive it.
class RecordWriter final : public train::Callback {
 public:
  explicit RecordWriter(record::Recorder& recorder) : recorder_(recorder) {}
  void on_step_end(const record::StepRecord& record, int64_t, train::LoopState&) override { recorder_.step(record); }
  void on_epoch_end(const record::EpochRecord& record, train::LoopState&) override { recorder_.epoch(record); }

 private:
  record::Recorder& recorder_;
};

// On rank 0: the progress bar, and a line for every `log_every` steps and each epoch. While a step, an evaluation or a
// checkpoint takes long, the bar shows for how long; without a terminal, a line does, every ten seconds at first.
class ConsoleProgress final : public train::Callback {
 public:
  // epochs: of the whole run; 0 if unknown, because the run counts steps.
  ConsoleProgress(int world, int64_t log_every, int64_t epochs)
      : world_(world),
        log_every_(log_every),
        epochs_(epochs),
        long_work_([this](const auto&... work) { show_age(work...); }) {}

  void on_phase(Phase phase, int64_t step, int bucket) override;
  void on_step_end(const record::StepRecord& record, int64_t step_of_epoch, train::LoopState& state) override;
  void on_epoch_end(const record::EpochRecord& record, train::LoopState& state) override;
  void on_fit_end(train::LoopState& state) override;
  void on_batch_weights(const std::vector<int64_t>& samples);

 private:
  void add_to_line(const record::StepRecord& record, int64_t step_of_epoch, int64_t steps_per_epoch);
  void show_age(const std::string& what, Phase phase, std::chrono::seconds age);

  const int world_;
  const int64_t log_every_;
  const int64_t epochs_;
  std::mutex mutex_;  // of the bar
  console::ProgressBar bar_;
  console::StepLine line_;
  std::chrono::seconds next_line_{0};  // the age of the current work at which a line says so
  LongWork long_work_;                 // last: its thread uses the others
};

// Reports the current step and phase to the launcher, and the step to the recorder of collectives. From the first step,
// a signal to stop is only recorded (launch/signals.hpp).
class LauncherLink final : public train::Callback {
 public:
  // table: where the launcher, or the link between the ranks, reads the progress; null for one rank. recorder: may be
  // null.
  LauncherLink(int local_rank, launch::ProgressTable* table, comm::FlightRecorder* recorder)
      : local_rank_(local_rank), table_(table), recorder_(recorder) {}

  void on_phase(Phase phase, int64_t step, int bucket) override;
  void on_step_end(const record::StepRecord& record, int64_t step_of_epoch, train::LoopState& state) override;

  // Whether a signal to this process or the launcher requests a stop: as train::AgreementOptions::stop_requested.
  ExitCode stop_requested() const;

  // The current step and phase for error messages: "step 57 phase backward".
  std::string where() const;

 private:
  const int local_rank_;
  launch::ProgressTable* const table_;
  comm::FlightRecorder* const recorder_;
  launch::Progress progress_;
  std::array<double, 3> own_times_{};  // of the last steps, in seconds, without waiting for other ranks
  std::size_t steps_ = 0;
};

}  // namespace ddprun::run
