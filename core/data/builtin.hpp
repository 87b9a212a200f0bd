// The built-in data sets but CIFAR-10. open_dataset describes their options.
#pragma once

#include <string>

#include "data/image_dataset.hpp"
#include "ddprun/plugin/dataset_options.hpp"

namespace ddprun::data {

// Images and labels in IDX files: MNIST, Fashion-MNIST, and the user's own.
inline constexpr auto kMnistOptions = image_split_options();  // of fashion-mnist too
inline constexpr auto kIdxOptions =
    joined(image_split_options(), std::array{integer_option("classes", nullptr, "1", "256",
                                                            "number of classes; the largest label + 1 if not given")});
inline const std::string kMnistRoot = "data/mnist";
Splits open_mnist(const DatasetContext& context);
Splits open_fashion_mnist(const DatasetContext& context);
Splits open_idx(const DatasetContext& context);

// A straight line with noise, for linear regression.
inline constexpr ddprun_option_spec kLinearOptions[] = {
    integer_option("samples", "10000", "1", "268435456", "of the training split"),  // 2 GiB
    integer_option("test_samples", "1000", "1", "268435456", "of the test split"),
    real_option("slope", "2", "-1e6", "1e6", "of the line"),
    real_option("intercept", "3", "-1e6", "1e6", "of the line"),
    real_option("noise", "0.1", "0", "1e6", "standard deviation of the noise"),
    kSeedOption,
};
Splits open_linear(const DatasetContext& context);

// Noise in the shape of images, cheap to fetch, for benchmarks of everything else.
inline constexpr ddprun_option_spec kSyntheticOptions[] = {
    text_option("shape", "3x224x224", "of one sample"),
    integer_option("classes", "1000", "1", "1000000", "number of classes"),
    integer_option("samples", "10000", "1", "1000000000", "of the training split"),
    integer_option("test_samples", "1000", "1", "1000000000", "of the test split"),
    kSeedOption,
};
Splits open_synthetic(const DatasetContext& context);

}  // namespace ddprun::data
