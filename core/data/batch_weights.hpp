// Load balance: a step's batch, shared out by weight.
#pragma once

#include <cstdint>
#include <vector>

#include "data/loader.hpp"

namespace ddprun::data {

// How many of `total` go to each weight, by the method of largest remainders (Hamilton 1792; of equal remainders the
// first is served first): they add up to total, and each is its exact share rounded down or up. Weights are 0 or more,
// not all 0.
std::vector<int64_t> apportion(int64_t total, const std::vector<double>& weights);

// From the batches of every rank, one for each step of an epoch, those of `rank` where each step's samples, in the
// order of the ranks, are shared out by weight.
Batches share_out(const std::vector<Batches>& batches, int rank, const std::vector<double>& weights);

}  // namespace ddprun::data
