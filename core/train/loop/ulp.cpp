#include "train/loop/ulp.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ddprun::train {
namespace {

// The distance from a non-negative float32 to the next larger one; for zero, that of the smallest float32.
double unit_of(float magnitude) {
  return static_cast<double>(std::nextafter(magnitude, std::numeric_limits<float>::infinity())) - magnitude;
}

}  // namespace

void UlpDistance::add(float reduced, double reference, double magnitude) {
  const double apart = std::abs(static_cast<double>(reduced) - static_cast<float>(reference));
  const double distance = apart / unit_of(static_cast<float>(magnitude));
  max_ = std::max(max_, distance);
  sum_ += distance;
  ++count_;
}

}  // namespace ddprun::train
