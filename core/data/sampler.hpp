// Sampler: which samples a rank sees in an epoch, and in what order.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace ddprun::data {

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
  // True when the ranks share the data set between them: ddp refuses one that does not.
  virtual bool distributed() const = 0;
};

// 0, 1, 2, ... of the whole data set.
std::unique_ptr<Sampler> sequential_sampler(int64_t dataset_size);

// A fresh permutation each epoch: torch.randperm of a generator seeded with seed + epoch.
std::unique_ptr<Sampler> random_sampler(int64_t dataset_size, uint64_t seed);

// torch.utils.data.DistributedSampler, index for index (shuffle: randperm seeded with seed + epoch; pad; every
// world-th). Throws Error(usage) when rank or world make no sense.
std::unique_ptr<Sampler> distributed_sampler(int64_t dataset_size, int rank, int world, uint64_t seed, bool shuffle,
                                             Last last);

// torch.randperm(n, generator) of PyTorch's CPU generator after manual_seed(seed): the same Mersenne Twister (Matsumoto
// and Nishimura 1998) and the same swaps as ATen's randperm_cpu.
std::vector<int64_t> randperm(int64_t n, uint64_t seed);

}  // namespace ddprun::data
