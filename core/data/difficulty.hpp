// The difficulty of each sample of a data set, for a curriculum.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ddprun/plugin/dataset_plugin.hpp"

namespace ddprun::data {

inline const std::string kMagnitude = "magnitude";

// A score for each sample, higher for more difficult ones. `source` is "magnitude", the mean absolute value of the
// input as epoch 0 gives it, or the path of a text file with one number per line in sample order. Not empty, `subset`
// chooses the samples and their order; the file still has a line for each sample of the data set. Equal on every rank
// and for any number of `workers`. Throws DatasetError("difficulty") that names file and line.
std::vector<double> difficulties(const std::string& source, const Dataset& dataset, int workers,
                                 std::span<const int64_t> subset = {});

}  // namespace ddprun::data
