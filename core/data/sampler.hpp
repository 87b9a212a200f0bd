// The built-in samplers.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "ddprun/sampler.hpp"

namespace ddprun::data {

// 0, 1, 2, ... over the whole data set.
std::unique_ptr<Sampler> sequential_sampler(int64_t dataset_size);

// A new permutation in each epoch: torch.randperm of a generator seeded with seed + epoch.
std::unique_ptr<Sampler> random_sampler(int64_t dataset_size, uint64_t seed);

// torch.utils.data.DistributedSampler, index for index (shuffle: randperm seeded with seed + epoch; pad; every world-th
// index). Throws Error(usage) for an impossible rank or world.
std::unique_ptr<Sampler> distributed_sampler(int64_t dataset_size, int rank, int world, uint64_t seed, bool shuffle,
                                             Last last);

// torch.randperm(n, generator) of PyTorch's CPU generator after manual_seed(seed): the same Mersenne Twister (Matsumoto
// and Nishimura 1998) and the same swaps as ATen's randperm_cpu.
std::vector<int64_t> randperm(int64_t n, uint64_t seed);

}  // namespace ddprun::data
