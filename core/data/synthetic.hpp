// Noise in the shape of images, so cheap to fetch that a benchmark measures everything else. See open_dataset.
#pragma once

#include "data/datasets.hpp"

namespace ddprun::data {

Splits open_synthetic(const DataOptions& data);

}  // namespace ddprun::data
