// Gradient accumulation: one batch, cut into parts that are run one after another.
#pragma once

#include <vector>

#include "train/loop/data_loader.hpp"

namespace ddprun::train {

// `count` parts in the order of the samples, sizes equal or one apart, the larger first; one part per sample where
// there are fewer. Views of the batch's tensors. Each part's weight is the batch's times its share of the samples, so
// that the sum over the parts of weight * gradient of the mean loss is the weighted gradient of the whole batch's. The
// batch holds a sample at least.
std::vector<TensorBatch> micro_batches(const TensorBatch& batch, int64_t count);

}  // namespace ddprun::train
