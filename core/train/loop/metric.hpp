// The metrics that compare epochs. Torch-free.
#pragma once

#include <string>

#include "ddprun/records.hpp"

namespace ddprun::train {

// "train.loss", "train.accuracy", "test.loss" or "test.accuracy" of an epoch; NaN if it was not measured.
double metric_of(const record::EpochRecord& epoch, const std::string& metric);

// The same for a config key that requires the metric: throws Error(usage) that names the key if it was not measured.
double needed_metric(const record::EpochRecord& epoch, const std::string& metric, const std::string& key);

// Whether `value` is better than `than` by more than `by`: lower for losses, higher for accuracies. Any number is
// better than NaN; NaN is never better.
bool is_better(const std::string& metric, double value, double than, double by = 0);

}  // namespace ddprun::train
