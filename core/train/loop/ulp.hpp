// The rounding error of reduced gradients, in units in the last place.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ddprun/records.hpp"

namespace ddprun::train {

// The distances of all elements added so far. A distance is |reduced - reference| in units in the last place (ULP) of
// float32, where the reference, a float64 mean over the ranks, is rounded to float32 first. The unit is that of the
// mean magnitude of the terms. If all terms have the same sign, this is the unit of the reference. If terms cancel, the
// reference is near zero, and its own unit would make the unavoidable rounding of the terms look large.
class UlpDistance {
 public:
  // reduced: an element after the allreduce. reference and magnitude: the means over the ranks of the terms and of
  // their absolute values.
  void add(float reduced, double reference, double magnitude);

  double max() const { return count_ == 0 ? record::kAbsent : max_; }
  double mean() const { return count_ == 0 ? record::kAbsent : sum_ / static_cast<double>(count_); }

 private:
  double max_ = 0;
  double sum_ = 0;
  int64_t count_ = 0;
};

}  // namespace ddprun::train
