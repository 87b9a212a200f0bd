// The straight line with noise that the tutorials fit. See open_dataset for its options.
#pragma once

#include "data/datasets.hpp"

namespace ddprun::data {

Splits open_linear(const DataOptions& data);

}  // namespace ddprun::data
