// A Dataset on top of a plugin's C function table.
#pragma once

#include "data/datasets.hpp"

namespace ddprun::data {

// Opens both splits and checks what they report. The table must outlive them. Throws DatasetError if the data set
// rejects its input, Error(failure) for any other failure of the data set, and Error(plugin) if it violates its
// contract: its properties are impossible, the splits do not match, a label is not a class, or an exception crosses the
// ABI boundary. The splits throw the same. Messages of the data set become one line each.
Splits open_splits(const ddprun_dataset_plugin& table, const DatasetContext& context);

}  // namespace ddprun::data
