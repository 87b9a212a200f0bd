// A sampler that begins with the easiest samples.
#pragma once

#include <memory>
#include <vector>

#include "data/sampler.hpp"

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

}  // namespace ddprun::data
