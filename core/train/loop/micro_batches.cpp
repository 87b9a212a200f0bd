#include "train/loop/micro_batches.hpp"

#include <algorithm>

namespace ddprun::train {

std::vector<TensorBatch> micro_batches(const TensorBatch& batch, int64_t count) {
  const int64_t parts = std::min(count, batch.size);
  if (parts <= 1) return {batch};
  std::vector<TensorBatch> cut;
  int64_t begin = 0;
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t size = batch.size / parts + (part < batch.size % parts ? 1 : 0);
    TensorBatch micro;
    micro.input = batch.input.narrow(0, begin, size);
    micro.target = batch.target.narrow(0, begin, size);
    micro.size = size;
    micro.weight = batch.weight * static_cast<double>(size) / static_cast<double>(batch.size);
    cut.push_back(std::move(micro));
    begin += size;
  }
  return cut;
}

}  // namespace ddprun::train
