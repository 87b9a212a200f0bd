// Sampler: which samples a rank sees in an epoch, and in what order.
#pragma once

#include <cstdint>
#include <vector>

namespace ddprun {

// What to do if the number of samples is not divisible by the number of ranks.
enum class Last {
  pad,    // repeat samples from the front, so that all ranks have the same number (PyTorch's default)
  drop,   // skip the remaining samples
  exact,  // use every sample exactly once: some ranks have one sample fewer
};

// A pure function of data set size, rank, world size, seed and epoch. Thread-safe.
class Sampler {
 public:
  virtual ~Sampler() = default;
  // The indices of this rank's samples in an epoch (epochs count from 0), in order.
  virtual std::vector<int64_t> indices(int64_t epoch) const = 0;
  // The number of a rank's indices; the same in every epoch.
  virtual int64_t size(int rank) const = 0;
};

}  // namespace ddprun
