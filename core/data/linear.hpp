// The straight line with noise that the tutorials fit. See open_dataset for its options.
#pragma once

#include "ddprun/plugin/dataset_plugin.hpp"

namespace ddprun::data {

Splits open_linear(const DatasetContext& context);

}  // namespace ddprun::data
