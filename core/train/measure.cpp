#include "train/measure.hpp"

#include <cmath>
#include <stdexcept>

namespace ddprun::train {

double measure_of(const record::EpochRecord& epoch, const std::string& measure) {
  if (measure == "train.loss") return epoch.train_loss;
  if (measure == "train.accuracy") return epoch.train_accuracy;
  if (measure == "test.loss") return epoch.test_loss;
  if (measure == "test.accuracy") return epoch.test_accuracy;
  throw std::logic_error("no such measure: " + measure);
}

bool is_better(const std::string& measure, double value, double than) {
  if (std::isnan(value)) return false;
  if (std::isnan(than)) return true;
  return measure.ends_with(".loss") ? value < than : value > than;
}

}  // namespace ddprun::train
