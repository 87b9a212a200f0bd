// Images and labels in IDX files: MNIST, Fashion-MNIST, and the user's own. open_dataset describes their options.
#pragma once

#include "ddprun/plugin/dataset_plugin.hpp"

namespace ddprun::data {

Splits open_mnist(const DatasetContext& context);
Splits open_fashion_mnist(const DatasetContext& context);
Splits open_idx(const DatasetContext& context);

}  // namespace ddprun::data
