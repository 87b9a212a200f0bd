#include <algorithm>
#include <cmath>

#include "base/log.hpp"
#include "cli/console/console.hpp"
#include "cli/console/progress_bar.hpp"
#include "cli/run/observers.hpp"
#include "train/loop/data_loader.hpp"

namespace ddprun::run {
namespace {

class ConsoleProgress final : public train::Observer {
 public:
  ConsoleProgress(int world, int64_t log_every, int64_t epochs)
      : world_(world), log_every_(log_every), epochs_(epochs) {}

  void on_step_end(const record::StepRecord& record, int64_t step_of_epoch, const train::LoopState& state) override {
    const int64_t steps = state.train.steps();
    add_to_line(record, step_of_epoch, steps);
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

  const int world_;
  const int64_t log_every_;
  const int64_t epochs_;
  console::StepLine line_;
  console::ProgressBar bar_;
};

}  // namespace

std::unique_ptr<train::Observer> console_progress(int world, int64_t log_every, int64_t epochs) {
  return std::make_unique<ConsoleProgress>(world, log_every, epochs);
}

}  // namespace ddprun::run
