// What becomes of a trainer's news: records, lines and the bar for a person, the progress page for the launcher.
#pragma once

#include <atomic>
#include <functional>

#include "app/run/gpu_watch.hpp"
#include "console/console.hpp"
#include "console/progress_bar.hpp"
#include "launch/progress.hpp"
#include "record/recorder.hpp"
#include "train/loop/observer.hpp"

namespace ddprun::run {

struct ObserverOptions {
  int rank = 0;
  int world = 1;
  int64_t log_every = 50;
  int64_t epochs = 0;                         // 0: unknown (a run of steps)
  launch::ProgressTable* progress = nullptr;  // may be null
  const std::atomic<bool>* stop = nullptr;    // raised by a signal, in a run without launcher; may be null
  GpuWatch* gpus = nullptr;                   // asked with each line of the log; null on CPUs
};

class RunObserver final : public train::Observer {
 public:
  RunObserver(record::Recorder& recorder, ObserverOptions options) : recorder_(recorder), options_(options) {}

  void phase(launch::Phase phase, int64_t step, int bucket) override;
  void step(const record::StepRecord& record, int64_t step_of_epoch, int64_t steps_per_epoch) override;
  void epoch(const record::EpochRecord& record) override;
  void shares(const std::vector<int64_t>& samples) override;
  bool stop_after(int64_t step) override;

  // The reducer is about to wait for this bucket.
  void waiting_for(int bucket) { phase(launch::Phase::allreduce, progress_.step, bucket); }
  // The step and phase under way, for the message of a failure: "step 57 phase backward".
  std::string where() const;

 private:
  int64_t steps_left(int64_t epoch, int64_t step_of_epoch, int64_t steps_per_epoch) const;

  record::Recorder& recorder_;
  const ObserverOptions options_;
  console::ProgressBar bar_;
  console::StepLine line_;
  launch::Progress progress_;
};

}  // namespace ddprun::run
