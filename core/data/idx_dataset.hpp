// Images and labels in IDX files: MNIST, Fashion-MNIST, and a user's own. See open_dataset for what they take.
#pragma once

#include "data/datasets.hpp"

namespace ddprun::data {

Splits open_mnist(const DataOptions& data);
Splits open_fashion_mnist(const DataOptions& data);
Splits open_idx(const DataOptions& data);

}  // namespace ddprun::data
