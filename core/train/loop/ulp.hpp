// How far a sum that was rounded on the way lies from one that was not.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ddprun/records.hpp"

namespace ddprun::train {

// Distances of the elements looked at so far. Each is |reduced - reference| in units in the last place (ULP) of
// float32, the reference, a float64 mean over the ranks, having been rounded to float32. The unit is that of the mean
// magnitude of the terms, which is the reference's own where they have one sign. Where they cancel, and the reference
// is near zero, its own unit would call the unavoidable rounding of the terms a great distance.
class UlpDistance {
 public:
  // reduced: an element as the ranks have it; reference and magnitude: means of the ranks' terms and of their absolute
  // values.
  void add(float reduced, double reference, double magnitude);

  double max() const { return count_ == 0 ? record::kAbsent : max_; }
  double mean() const { return count_ == 0 ? record::kAbsent : sum_ / static_cast<double>(count_); }

 private:
  double max_ = 0;
  double sum_ = 0;
  int64_t count_ = 0;
};

}  // namespace ddprun::train
