// The built-in sampler, and the split of a training set into samples to train on and to validate on.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "ddprun/sampler.hpp"

namespace ddprun::data {

// torch.utils.data.DistributedSampler, index for index (shuffle: randperm seeded with seed + epoch; pad; every world-th
// index). In a world of one it is torch's SequentialSampler, or its RandomSampler with a generator seeded with seed +
// epoch. Throws Error(usage) for an impossible rank, world or size.
std::unique_ptr<Sampler> distributed_sampler(int64_t dataset_size, int rank, int world, uint64_t seed, bool shuffle,
                                             Last last);

// torch.randperm(n, generator) of PyTorch's CPU generator after manual_seed(seed): the same Mersenne Twister (Matsumoto
// and Nishimura 1998) and the same swaps as ATen's randperm_cpu.
std::vector<int64_t> randperm(int64_t n, uint64_t seed);

// The training set and the validation set, whose samples are evaluated instead of trained on, as indices.
struct Split {
  std::vector<int64_t> train, validation;
};

// torch.utils.data.random_split(dataset, [size - count, count], torch.Generator().manual_seed(seed)), index for index.
// A pure function, so it is the same on all ranks. `count` is from 0 to `size`.
Split random_split(int64_t size, int64_t count, uint64_t seed);

// The number of validation samples in a training set of `size` samples: a `validation` below 1 is a fraction, rounded
// down as by random_split; otherwise it is the number. Throws DatasetError("validation") if no sample would be left to
// validate or to train on.
int64_t validation_samples(double validation, int64_t size);

// torch.utils.data.Subset: the indices of `sampler`, which are positions in `subset`, become the samples there.
// `subset` must outlive the result; if it is empty, the result is `sampler` itself.
std::unique_ptr<Sampler> subset_sampler(std::unique_ptr<Sampler> sampler, std::span<const int64_t> subset);

}  // namespace ddprun::data
