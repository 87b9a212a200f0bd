// The command's callbacks: records, console output, and the launcher's progress table.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "console/console.hpp"
#include "console/progress_bar.hpp"
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

// On rank 0: the progress bar, and a line for every `log_every` steps and each epoch.
class ConsoleProgress final : public train::Callback {
 public:
  // epochs: of the whole run; 0 if unknown, because the run counts steps.
  ConsoleProgress(int world, int64_t log_every, int64_t epochs)
      : world_(world), log_every_(log_every), epochs_(epochs) {}

  void on_step_end(const record::StepRecord& record, int64_t step_of_epoch, train::LoopState& state) override;
  void on_epoch_end(const record::EpochRecord& record, train::LoopState& state) override;
  void on_batch_weights(const std::vector<int64_t>& samples);

 private:
  void add_to_line(const record::StepRecord& record, int64_t step_of_epoch, int64_t steps_per_epoch);

  const int world_;
  const int64_t log_every_;
  const int64_t epochs_;
  console::ProgressBar bar_;
  console::StepLine line_;
};

// Reports the current step and phase to the launcher, and stops if the launcher or a signal requests it.
class LauncherLink final : public train::Callback {
 public:
  // table: null unless our own launcher watches. stop: set by a signal in a run without launcher; may be null.
  LauncherLink(int local_rank, launch::ProgressTable* table, const std::atomic<bool>* stop)
      : local_rank_(local_rank), table_(table), stop_(stop) {}

  void on_phase(Phase phase, int64_t step, int bucket) override;
  bool should_stop(int64_t step) override;

  // The current step and phase for error messages: "step 57 phase backward".
  std::string where() const;

 private:
  const int local_rank_;
  launch::ProgressTable* const table_;
  const std::atomic<bool>* const stop_;
  launch::Progress progress_;
};

}  // namespace ddprun::run
