// One pass over the inputs of a data set. Private to the module.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "ddprun/plugin/dataset_plugin.hpp"

namespace ddprun::data {

// Calls visit(input) for each sample of `subset` (empty: of the whole data set) in order, on this thread, as epoch 0
// gives them; `workers` threads prefetch. Throws DatasetError(key) for inputs that are not float32 or not finite.
void for_each_input(const Dataset& dataset, std::span<const int64_t> subset, int workers, const std::string& key,
                    const std::function<void(const float*)>& visit);

}  // namespace ddprun::data
