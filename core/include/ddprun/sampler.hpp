// Sampler: which samples a rank sees in an epoch, and in what order.
#pragma once

#include <cstdint>
#include <vector>

namespace ddprun {

// What happens at the end when the ranks do not divide the data set.
enum class Last {
  pad,    // repeat samples from the front, so that all ranks have equally many (PyTorch's default)
  drop,   // leave the rest out
  exact,  // no sample twice, none left out: some ranks have one fewer
};

// A pure function of (data set size, rank, world, seed, epoch). Thread-safe.
class Sampler {
 public:
  virtual ~Sampler() = default;
  // This rank's indices for an epoch (from 0), in order.
  virtual std::vector<int64_t> indices(int64_t epoch) const = 0;
  // How many indices a rank has; equal in every epoch.
  virtual int64_t size(int rank) const = 0;
};

}  // namespace ddprun
