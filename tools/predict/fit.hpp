// Finds a link's alpha and beta from measured times. Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/predict/cost.hpp"

namespace ddprun::predict {

// One measured allreduce.
struct Measured {
  Path path;
  double seconds = 0;  // above 0
};

// Whether the measurements can separate latency from bandwidth: the bytes for each message differ by a factor of 4 at
// least.
bool is_determined(const std::vector<Measured>& measured);

// Least squares of the relative error (predicted / measured - 1), with alpha and beta at least 0: so a small vector
// counts as much as a large one. Requires is_determined().
Link fit(const std::vector<Measured>& measured);

// predicted / measured - 1 of each.
std::vector<double> errors_of(const Link& link, const std::vector<Measured>& measured);

}  // namespace ddprun::predict
