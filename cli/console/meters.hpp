// Meters: running means of the figures that a run prints. Torch-free.
#pragma once

#include <cstdint>
#include <limits>

namespace ddprun::record {

struct Mean {
  double sum = 0;
  int64_t count = 0;

  // `value` counts `n` times (a mean loss over n samples); n > 0.
  void add(double value, int64_t n) {
    sum += value * static_cast<double>(n);
    count += n;
  }
  // NaN before the first value.
  double value() const {
    return count > 0 ? sum / static_cast<double>(count) : std::numeric_limits<double>::quiet_NaN();
  }
};

// As the AverageMeter of PyTorch's ImageNet example, but with the mean of the last values instead of the last value.
// Single-threaded.
struct Meter {
  Mean recent;  // since the caller cleared it
  Mean all;

  void update(double value, int64_t n = 1) {
    recent.add(value, n);
    all.add(value, n);
  }
};

}  // namespace ddprun::record
