// CIFAR-10 (Krizhevsky 2009) in its binary form: records of one label byte and 32 x 32 pixels, as red, green and blue
// planes. open_dataset describes its paths and options.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "data/image_dataset.hpp"
#include "ddprun/plugin/dataset_options.hpp"

namespace ddprun::data {

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
// function, safe for any bytes. Throws InvalidDataset("root") that begins with `path` and the offset. Private to the
// module.
void check_cifar10_records(std::span<const uint8_t> bytes, const std::string& path);

}  // namespace ddprun::data
