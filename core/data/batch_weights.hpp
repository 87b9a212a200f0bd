// Load balance: splits a step's batch by weight.
#pragma once

#include <cstdint>
#include <vector>

#include "data/loader.hpp"

namespace ddprun::data {

// Splits `total` in proportion to the weights by the method of largest remainders (Hamilton 1792; of equal remainders
// the first wins). The parts add up to total, and each is its exact quota rounded down or up. Weights must be at least
// 0, and not all 0.
std::vector<int64_t> apportion(int64_t total, const std::vector<double>& weights);

// The batches of `rank`, one per step, if each step's samples (of all ranks, in rank order) are split by weight.
// `batches` holds the unweighted batches of every rank.
Batches share_out(const std::vector<Batches>& batches, int rank, const std::vector<double>& weights);

}  // namespace ddprun::data
