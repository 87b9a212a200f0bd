// One pass over the inputs of a whole data set. Private to the module.
#pragma once

#include <functional>
#include <string>

#include "ddprun/plugin/dataset_plugin.hpp"

namespace ddprun::data {

// Calls visit(index, input) for each sample in order, on this thread, as epoch 0 gives them; `workers` threads
// prefetch. Throws DatasetError(key) for inputs that are not float32 or not finite.
void for_each_input(const Dataset& dataset, int workers, const std::string& key,
                    const std::function<void(int64_t, const float*)>& visit);

}  // namespace ddprun::data
