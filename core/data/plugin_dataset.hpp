// A data set behind its C table, as Dataset.
#pragma once

#include "data/datasets.hpp"

namespace ddprun::data {

// Opens both splits and checks what they say of themselves. The table must outlive them. Throws DatasetError where the
// data set calls its input invalid, Error(failure) for any other failure of the data set, Error(plugin) where it breaks
// its contract: what it says of itself is impossible, the splits do not fit together, a label is no class, an exception
// crosses the border. The splits throw the same. Texts of the data set arrive as one line each.
Splits open_splits(const ddprun_dataset_plugin& table, const DatasetContext& context);

}  // namespace ddprun::data
