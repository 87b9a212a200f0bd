// A data set behind its C table, as Dataset. Private to the room.
#pragma once

#include "data/datasets.hpp"

namespace ddprun::data {

// Opens both splits and checks what they say of themselves. The table must outlive them. Throws DatasetError where the
// data set calls its input invalid or the splits do not fit together, Error(failure) for any other failure of the data
// set, Error(plugin) where it contradicts its contract; the splits throw the first two.
Splits open_splits(const ddprun_dataset_plugin& table, const DatasetContext& context);

}  // namespace ddprun::data
