// The built-in data sets. open_dataset describes their paths and options.
#pragma once

#include <cstdint>
#include <span>
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

// CIFAR-10 (Krizhevsky 2009) in its binary form: records of one label byte and 32 x 32 pixels, as red, green and blue
// planes.
inline constexpr auto kCifar10Options =
    joined(image_split_options("0.5", "0.5"),
           std::array{list_of(text_option("train",
                                          "data_batch_1.bin, data_batch_2.bin, data_batch_3.bin, data_batch_4.bin, "
                                          "data_batch_5.bin",
                                          "names of the files of the training split")),
                      list_of(text_option("test", "test_batch.bin", "names of the files of the test split"))});
inline const std::string kCifar10Root = "data/cifar10";
Splits open_cifar10(const DatasetContext& context);

// Checks that `bytes`, a whole file, consists of complete records (at least one) with labels from 0 to 9. A pure
// function, safe for any bytes. Throws InvalidDataset("root") that begins with `path` and the offset.
void check_cifar10_records(std::span<const uint8_t> bytes, const std::string& path);

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
