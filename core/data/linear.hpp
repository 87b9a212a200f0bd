// A straight line with noise, for linear regression. open_dataset describes its options.
#pragma once

#include "ddprun/plugin/dataset_plugin.hpp"

namespace ddprun::data {

Splits open_linear(const DatasetContext& context);

}  // namespace ddprun::data
