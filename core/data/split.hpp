// The validation set: samples of the training set that are evaluated instead of trained on.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "ddprun/sampler.hpp"

namespace ddprun::data {

// Indices of samples, by what they are used for.
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
