#include "train/loop/early_stop.hpp"

#include "train/loop/metric.hpp"

namespace ddprun::train {
namespace {

const std::string kBest = "early_stop.best", kWaited = "early_stop.waited";

}  // namespace

bool gives_up(const EarlyStop& rule, const record::EpochRecord& epoch, std::map<std::string, double>& numbers) {
  if (rule.measure.empty()) return false;
  const double value = needed_metric(epoch, rule.measure, "train.early_stop");
  const auto best = numbers.find(kBest);
  if (best == numbers.end() || is_better(rule.measure, value, best->second, rule.min_delta)) {
    numbers[kBest] = value;
    numbers[kWaited] = 0;
    return false;
  }
  return ++numbers[kWaited] >= static_cast<double>(rule.patience);
}

}  // namespace ddprun::train
