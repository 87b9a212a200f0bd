// CIFAR-10 (Krizhevsky 2009) in its binary form: records of one label byte and 32 x 32 pixels, red, green and blue
// plane. See open_dataset for where it is looked for and what it takes.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "ddprun/plugin/dataset_plugin.hpp"

namespace ddprun::data {

Splits open_cifar10(const DatasetContext& context);

// Checks that `bytes`, a whole file, are records: one or more, none cut off, labels from 0 to 9. Pure, safe for any
// bytes. Throws InvalidDataset("root") that begins with `path` and the offset. Private to the module.
void check_cifar10_records(std::span<const uint8_t> bytes, const std::string& path);

}  // namespace ddprun::data
