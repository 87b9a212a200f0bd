#include "train/loop/early_stop.hpp"

#include "train/loop/metric.hpp"

namespace ddprun::train {
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
