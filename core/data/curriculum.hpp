// A sampler that begins with the easiest samples, and how difficult they are.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/sampler.hpp"
#include "ddprun/plugin/dataset_plugin.hpp"

namespace ddprun::data {

struct Curriculum {
  std::vector<double> difficulty;  // by sample; finite
  double start = 0.2;              // fraction of the samples, the easiest, in epoch 0; above 0, at most 1
  int64_t epochs = 1;              // from this epoch on all samples are used; the fraction grows linearly until then
};

// The number of easiest samples that an epoch (from 0) draws from: at least one.
int64_t eligible_samples(const Curriculum& curriculum, int64_t epoch);

// A curriculum (Bengio et al. 2009, with the linear pacing of Hacohen and Weinshall 2019). Each epoch has the length of
// the data set and repeats random permutations of the eligible samples. Of equally difficult samples the lower index
// comes first. Once all samples are eligible, the epochs equal those of distributed_sampler(), shuffled, index for
// index. Also a pure function of the scores. Throws Error(usage) as distributed_sampler() does.
std::unique_ptr<Sampler> curriculum_sampler(Curriculum curriculum, int rank, int world, uint64_t seed, Last last);

inline const std::string kMagnitude = "magnitude";

// A score for each sample, higher for more difficult ones. `source` is "magnitude", the mean absolute value of the
// input as epoch 0 gives it, or the path of a text file with one number per line in sample order. Not empty, `subset`
// chooses the samples and their order; the file still has a line for each sample of the data set. Equal on every rank
// and for any number of `workers`. Throws DatasetError("difficulty") that names file and line.
std::vector<double> difficulties(const std::string& source, const Dataset& dataset, int workers,
                                 std::span<const int64_t> subset = {});

}  // namespace ddprun::data
