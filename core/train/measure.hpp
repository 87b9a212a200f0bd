// The measures by which an epoch is better than another. Torch-free.
#pragma once

#include <string>

#include "record/records.hpp"

namespace ddprun::train {

// "train.loss", "train.accuracy", "test.loss" or "test.accuracy" of an epoch; NaN where it was not measured.
double measure_of(const record::EpochRecord& epoch, const std::string& measure);

// Whether a value of the measure is better than another: losses lower, accuracies higher. Anything is better than NaN,
// NaN than nothing.
bool is_better(const std::string& measure, double value, double than);

}  // namespace ddprun::train
