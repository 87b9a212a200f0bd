// Noise in the shape of images, cheap to fetch, for benchmarks of everything else. See open_dataset.
#pragma once

#include "ddprun/plugin/dataset_plugin.hpp"

namespace ddprun::data {

Splits open_synthetic(const DatasetContext& context);

}  // namespace ddprun::data
