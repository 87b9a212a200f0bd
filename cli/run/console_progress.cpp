#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/log.hpp"
#include "cli/console/console.hpp"
#include "cli/console/progress_bar.hpp"
#include "cli/console/units.hpp"
#include "cli/run/observers.hpp"
#include "train/loop/data_loader.hpp"

namespace ddprun::run {
namespace {

using std::chrono::seconds;

constexpr seconds kTick{1}, kLong{2}, kFirstLine{10}, kLineInterval{60};

// The formatting functions end their text in a newline, and the log adds another.
void print(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  log::plain(text);
}

bool is_step(Phase phase) {
  return phase != Phase::setup && phase != Phase::evaluate && phase != Phase::checkpoint;
}

std::string name_of_work(Phase phase, int64_t step) {
  switch (phase) {
    case Phase::setup: return "the set-up";
    case Phase::evaluate: return "the evaluation";
    case Phase::checkpoint: return "the checkpoint";
    default: return "step " + std::to_string(step);
  }
}

class ConsoleProgress final : public train::Observer {
 public:
  ConsoleProgress(int world, int64_t log_every, int64_t epochs)
      : world_(world), log_every_(log_every), epochs_(epochs), thread_([this] { watch(); }) {}
  ~ConsoleProgress() override {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  // A phase of a step begins; an evaluation and a checkpoint are work of their own.
  void on_phase(Phase phase, int64_t step, int) override {
    const std::lock_guard lock(mutex_);
    const bool same = working_ && step == step_ && (phase == phase_ || (is_step(phase) && is_step(phase_)));
    if (!same) since_ = Clock::now();
    step_ = step;
    phase_ = phase;
    working_ = true;
  }

  void on_step_end(const record::StepRecord& record, int64_t step_of_epoch, const train::LoopState& state) override {
    const int64_t steps = state.train.steps();
    add_to_line(record, step_of_epoch, steps);
    // Of all epochs; in a run of steps, of this epoch.
    const int64_t steps_left = std::max<int64_t>(epochs_ - record.epoch, 0) * steps + steps - step_of_epoch;
    const std::lock_guard lock(mutex_);
    const double mean_time = line_.time.all.value();
    bar_.show(record.epoch, epochs_, step_of_epoch, steps, line_.loss.all.value(),
              static_cast<double>(record.samples) * world_ / mean_time, mean_time * static_cast<double>(steps_left));
    if (!is_line_due(log_every_, step_of_epoch, steps)) return;
    print(console::step_line(line_));
    for (console::Meter* meter : {&line_.time, &line_.data, &line_.loss, &line_.accuracy}) meter->recent = {};
  }

  void on_epoch_end(const record::EpochRecord& record, const train::LoopState&) override {
    print(console::epoch_line(record));
  }

  void on_fit_end() override {
    const std::lock_guard lock(mutex_);
    working_ = false;
    bar_.clear();
  }

 private:
  using Clock = std::chrono::steady_clock;

  void add_to_line(const record::StepRecord& record, int64_t step_of_epoch, int64_t steps_per_epoch) {
    if (step_of_epoch == 1) line_ = {};
    if (line_.time.all.count == 0) line_.since = step_of_epoch;
    line_.of_rank0 = world_ > 1;
    line_.epoch = record.epoch;
    line_.step = step_of_epoch;
    line_.steps = steps_per_epoch;
    line_.time.update(record.total);
    line_.data.update(record.data);
    if (record.samples == 0) return;
    line_.loss.update(record.loss, record.samples);
    if (!std::isnan(record.accuracy)) line_.accuracy.update(record.accuracy, record.samples);
  }

  void watch() {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, kTick, [this] { return ended_; })) {
      const auto age = std::chrono::floor<seconds>(Clock::now() - since_);
      if (working_ && age >= kLong) show_age(age);
    }
  }

  void show_age(seconds age) {
    const std::string time = age < std::chrono::minutes(1) ? std::to_string(age.count()) + " s"
                                                           : console::human_time(static_cast<double>(age.count()));
    const std::string what = name_of_work(phase_, step_);
    if (bar_.is_visible()) return bar_.note(what + ": " + time);
    if (age < kFirstLine) next_line_ = kFirstLine;
    if (age < next_line_) return;
    next_line_ = age + std::min(age, kLineInterval);
    log::info(what + " has taken " + time + " so far (" + name_of(phase_) + ")");
  }

  const int world_;
  const int64_t log_every_;
  const int64_t epochs_;
  console::StepLine line_;
  std::mutex mutex_;  // of all below
  std::condition_variable changed_;
  console::ProgressBar bar_;
  bool ended_ = false, working_ = false;
  int64_t step_ = 0;
  Phase phase_ = Phase::start;
  Clock::time_point since_ = Clock::now();  // when the current work began
  seconds next_line_{0};                    // the age of the current work at which a line says so
  std::thread thread_;                      // last: it uses the others
};

}  // namespace

std::unique_ptr<train::Observer> console_progress(int world, int64_t log_every, int64_t epochs) {
  return std::make_unique<ConsoleProgress>(world, log_every, epochs);
}

}  // namespace ddprun::run
