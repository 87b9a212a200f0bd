// Images and labels in IDX files: MNIST, Fashion-MNIST, and the user's own. open_dataset describes their options.
#pragma once

#include <string>

#include "data/image_dataset.hpp"
#include "ddprun/plugin/dataset_options.hpp"

namespace ddprun::data {

inline constexpr auto kMnistOptions = image_split_options();  // of fashion-mnist too
inline constexpr auto kIdxOptions =
    joined(image_split_options(), std::array{integer_option("classes", nullptr, "1", "256",
                                                            "number of classes; the largest label + 1 if not given")});
inline const std::string kMnistRoot = "data/mnist";
Splits open_mnist(const DatasetContext& context);
Splits open_fashion_mnist(const DatasetContext& context);
Splits open_idx(const DatasetContext& context);

}  // namespace ddprun::data
