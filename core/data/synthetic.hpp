// Noise in the shape of images, cheap to fetch, for benchmarks of everything else. See open_dataset.
#pragma once

#include "ddprun/plugin/dataset_options.hpp"

namespace ddprun::data {

inline constexpr ddprun_option_spec kSyntheticOptions[] = {
    text_option("shape", "3x224x224", "of one sample"),
    integer_option("classes", "1000", "1", "1000000", "number of classes"),
    integer_option("samples", "10000", "1", "1000000000", "of the training split"),
    integer_option("test_samples", "1000", "1", "1000000000", "of the test split"),
    kSeedOption,
};
Splits open_synthetic(const DatasetContext& context);

}  // namespace ddprun::data
