// A sampler that begins with what is easy.
#pragma once

#include <memory>
#include <vector>

#include "data/sampler.hpp"

namespace ddprun::data {

struct Curriculum {
  std::vector<double> difficulty;  // of each sample; finite
  double start = 0.2;              // share of the samples, the easiest, in epoch 0; above 0, at most 1
  int64_t epochs = 1;              // from this one on all of them; the share widens linearly until then
};

// How many of the samples, the easiest, an epoch (from 0) draws from: at least one.
int64_t eligible_samples(const Curriculum& curriculum, int64_t epoch);

// A curriculum (Bengio et al. 2009, with the linear pacing of Hacohen and Weinshall 2019): each epoch is as long as the
// data set, drawn from the eligible samples, permutation after permutation of them; of equally difficult ones those of
// lower index come first. Once all are eligible, the epochs are those of distributed_sampler(), shuffled, index for
// index. A pure function of the scores besides. Throws Error(usage) as that does.
std::unique_ptr<Sampler> curriculum_sampler(Curriculum curriculum, int rank, int world, uint64_t seed, Last last);

}  // namespace ddprun::data
