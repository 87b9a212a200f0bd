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

// With a misfit for each measurement. Of all links that some two of the measurements determine, or one of them with
// alpha or beta 0, the link with the least sum of |log(predicted / measured)|; neither alpha nor beta is negative.
// Relative errors: a small vector counts as much as a large one. No squares: where one size has a time of its own, such
// as a stall of the kernel, it does not change the line through the others. Requires is_determined(). Takes time in
// proportion to the cube of the number of measurements.
Link fit(const std::vector<Measured>& measured);

}  // namespace ddprun::predict
