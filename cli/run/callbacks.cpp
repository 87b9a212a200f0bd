#include "cli/run/callbacks.hpp"

#include <algorithm>
#include <cmath>

#include "base/log.hpp"
#include "cli/console/units.hpp"
#include "launch/signals.hpp"
#include "train/loop/data_loader.hpp"

namespace ddprun::run {
namespace {

constexpr std::chrono::seconds kFirstLine{10}, kLineInterval{60};

// The formatting functions end their text in a newline, and the log adds another.
void print(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  log::plain(text);
}

}  // namespace

bool is_line_due(int64_t log_every, int64_t step_of_epoch, int64_t steps_per_epoch) {
  return log_every > 0 && (step_of_epoch % log_every == 0 || step_of_epoch == steps_per_epoch);
}

void ConsoleProgress::add_to_line(const record::StepRecord& record, int64_t step_of_epoch, int64_t steps_per_epoch) {
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

void ConsoleProgress::on_step_end(const record::StepRecord& record, int64_t step_of_epoch, train::LoopState& state) {
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
  for (record::Meter* meter : {&line_.time, &line_.data, &line_.loss, &line_.accuracy}) meter->recent = {};
}

void ConsoleProgress::on_phase(Phase phase, int64_t step, int) {
  long_work_.on_phase(phase, step);
}

void ConsoleProgress::on_epoch_end(const record::EpochRecord& record, train::LoopState&) {
  print(console::epoch_line(record));
}

void ConsoleProgress::on_fit_end(train::LoopState&) {
  long_work_.pause();
  const std::lock_guard lock(mutex_);
  bar_.clear();
}

void ConsoleProgress::on_batch_weights(const std::vector<int64_t>& samples) {
  std::string text;
  for (const int64_t count : samples) text += (text.empty() ? "" : ", ") + std::to_string(count);
  log::info("samples of a step by the ranks' speeds: " + text);
}

void ConsoleProgress::show_age(const std::string& what, Phase phase, std::chrono::seconds age) {
  const std::string time = age < std::chrono::minutes(1) ? std::to_string(age.count()) + " s"
                                                         : console::human_time(static_cast<double>(age.count()));
  const std::lock_guard lock(mutex_);
  if (bar_.is_visible()) return bar_.note(what + ": " + time);
  if (age < kFirstLine) next_line_ = kFirstLine;
  if (age < next_line_) return;
  next_line_ = age + std::min(age, kLineInterval);
  log::info(what + " has taken " + time + " so far (" + name_of(phase) + ")");
}

void LauncherLink::on_phase(Phase phase, int64_t step, int bucket) {
  if (progress_.step == 0 && step > 0) launch::defer_stop_signals();
  progress_ = {step, phase, bucket};
  if (table_ != nullptr) table_->set(local_rank_, progress_);
  if (recorder_ != nullptr) recorder_->set_step(step);
}

void LauncherLink::on_step_end(const record::StepRecord& record, int64_t, train::LoopState&) {
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

std::string LauncherLink::where() const {
  std::string text = "step " + std::to_string(progress_.step) + " phase " + name_of(progress_.phase);
  if (progress_.bucket >= 0) text += " bucket " + std::to_string(progress_.bucket);
  return text;
}

}  // namespace ddprun::run
