#include "train/loop/metric.hpp"

#include <cmath>
#include <stdexcept>

#include "ddprun/error.hpp"

namespace ddprun::train {

double metric_of(const record::EpochRecord& epoch, const std::string& measure) {
  if (measure == "train.loss") return epoch.train_loss;
  if (measure == "train.accuracy") return epoch.train_accuracy;
  if (measure == "test.loss") return epoch.test_loss;
  if (measure == "test.accuracy") return epoch.test_accuracy;
  throw std::logic_error("no such measure: " + measure);
}

double needed_metric(const record::EpochRecord& epoch, const std::string& measure, const std::string& key) {
  const double value = metric_of(epoch, measure);
  if (!std::isnan(value)) return value;
  throw Error(ExitCode::usage,
              key + " = \"" + measure + "\": this model has no such measure; use \"test.loss\" or \"train.loss\"");
}

bool is_better(const std::string& measure, double value, double than, double by) {
  if (std::isnan(value)) return false;
  if (std::isnan(than)) return true;
  return measure.ends_with(".loss") ? value < than - by : value > than + by;
}

}  // namespace ddprun::train
