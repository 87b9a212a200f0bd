#include "app/run/run_observer.hpp"

#include <algorithm>
#include <cmath>

#include "base/log.hpp"

namespace ddprun::run {
namespace {

// The formatting functions end their text in a newline; the log adds its own.
void print(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  log::plain(text);
}

}  // namespace

void RunObserver::phase(launch::Phase phase, int64_t step, int bucket) {
  progress_ = {step, phase, bucket};
  if (options_.progress != nullptr) options_.progress->set(options_.rank, progress_);
}

void RunObserver::step(const record::StepRecord& record, int64_t step_of_epoch, int64_t steps_per_epoch) {
  recorder_.step(record);
  const bool due =
      options_.log_every > 0 && (step_of_epoch % options_.log_every == 0 || step_of_epoch == steps_per_epoch);
  if (due && options_.gpus != nullptr) options_.gpus->look(record.step);
  if (options_.rank != 0) return;
  if (step_of_epoch == 1) line_ = {};
  line_.epoch = record.epoch;
  line_.step = step_of_epoch;
  line_.steps = steps_per_epoch;
  line_.time.update(record.total);
  line_.data.update(record.data);
  if (record.samples > 0) {
    line_.loss.update(record.loss, record.samples);
    if (!std::isnan(record.correct)) {
      line_.accuracy.update(record.correct / static_cast<double>(record.samples), record.samples);
    }
  }
  bar_.show(record.epoch, options_.epochs, step_of_epoch, steps_per_epoch, line_.loss.avg,
            static_cast<double>(record.samples) * options_.world / line_.time.avg,
            line_.time.avg * static_cast<double>(steps_left(record.epoch, step_of_epoch, steps_per_epoch)));
  if (due) {
    bar_.clear();
    print(console::step_line(line_));
  }
}

void RunObserver::epoch(const record::EpochRecord& record) {
  recorder_.epoch(record);
  if (options_.rank != 0) return;
  bar_.clear();
  print(console::epoch_line(record));
}

void RunObserver::shares(const std::vector<int64_t>& samples) {
  if (options_.rank != 0) return;
  std::string text;
  for (const int64_t count : samples) text += (text.empty() ? "" : ", ") + std::to_string(count);
  bar_.clear();
  log::info("shares of a step by the ranks' speeds: " + text + " samples");
}

bool RunObserver::stop_after(int64_t step) {
  if (options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed)) return true;
  if (options_.progress == nullptr) return false;
  const int64_t last = options_.progress->stop_after();
  return last != 0 && step >= last;
}

// Of all epochs; of a run of steps, of this epoch.
int64_t RunObserver::steps_left(int64_t epoch, int64_t step_of_epoch, int64_t steps_per_epoch) const {
  return std::max<int64_t>(options_.epochs - epoch, 0) * steps_per_epoch + steps_per_epoch - step_of_epoch;
}

std::string RunObserver::where() const {
  std::string text = "step " + std::to_string(progress_.step) + " phase " + launch::name_of(progress_.phase);
  if (progress_.bucket >= 0) text += " bucket " + std::to_string(progress_.bucket);
  return text;
}

}  // namespace ddprun::run
