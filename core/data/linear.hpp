// A straight line with noise, for linear regression. open_dataset describes its options.
#pragma once

#include "ddprun/plugin/dataset_options.hpp"

namespace ddprun::data {

inline constexpr ddprun_option_spec kLinearOptions[] = {
    integer_option("samples", "10000", "1", "268435456", "of the training split"),  // 2 GiB
    integer_option("test_samples", "1000", "1", "268435456", "of the test split"),
    real_option("slope", "2", "-1e6", "1e6", "of the line"),
    real_option("intercept", "3", "-1e6", "1e6", "of the line"),
    real_option("noise", "0.1", "0", "1e6", "standard deviation of the noise"),
    kSeedOption,
};
Splits open_linear(const DatasetContext& context);

}  // namespace ddprun::data
