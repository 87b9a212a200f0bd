#include "train/loop/early_stop.hpp"

#include <cmath>

#include "ddprun/error.hpp"
#include "record/fields.hpp"

namespace ddprun::train {

double needed_metric(const record::EpochRecord& epoch, const std::string& metric, const std::string& key) {
  const double value = record::metric_of(epoch, metric);
  if (!std::isnan(value)) return value;
  throw Error(ExitCode::usage,
              key + " = \"" + metric + "\": this model has no such metric; use \"test.loss\" or \"train.loss\"");
}

bool is_better(const std::string& metric, double value, double than, double by) {
  if (std::isnan(value)) return false;
  if (std::isnan(than)) return true;
  return metric.ends_with(".loss") ? value < than - by : value > than + by;
}

namespace {

// Keys of Position::numbers.
const std::string kBest = "early_stop.best", kWaited = "early_stop.waited";

}  // namespace

void EarlyStop::on_epoch_end(const record::EpochRecord& record, LoopState& state) {
  if (state.ends_after(record.epoch) || !should_stop_after(record, state.at.numbers)) return;
  state.stop = true;
  state.stopped = kEarlyStop;
}

bool EarlyStop::should_stop_after(const record::EpochRecord& epoch, std::map<std::string, double>& numbers) const {
  const double value = needed_metric(epoch, rule_.metric, "train.early_stop");
  const auto best = numbers.find(kBest);
  if (best == numbers.end() || is_better(rule_.metric, value, best->second, rule_.min_delta)) {
    numbers[kBest] = value;
    numbers[kWaited] = 0;
    return false;
  }
  return ++numbers[kWaited] >= static_cast<double>(rule_.patience);
}

}  // namespace ddprun::train
