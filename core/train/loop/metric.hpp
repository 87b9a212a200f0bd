// The measures by which an epoch is better than another. Torch-free.
#pragma once

#include <string>

#include "ddprun/records.hpp"

namespace ddprun::train {

// "train.loss", "train.accuracy", "test.loss" or "test.accuracy" of an epoch; NaN where it was not measured.
double metric_of(const record::EpochRecord& epoch, const std::string& measure);

// The same for a key of the config that relies on it: throws Error(usage) that names the key where it was not measured.
double needed_metric(const record::EpochRecord& epoch, const std::string& measure, const std::string& key);

// Whether a value of the measure is better than another, by more than `by`: losses lower, accuracies higher. Anything
// is better than NaN, NaN than nothing.
bool is_better(const std::string& measure, double value, double than, double by = 0);

}  // namespace ddprun::train
