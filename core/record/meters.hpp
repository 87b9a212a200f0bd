// record: the measurements of a run: meters, step records, the run's folder and its files. Written once, read by report
// and compare. Torch-free.
#pragma once

#include <cstdint>

namespace ddprun::record {

// The AverageMeter of PyTorch's ImageNet example: the last value and the average. Single-threaded.
struct Meter {
  double val = 0;
  double avg = 0;  // sum / count; 0 before the first update
  double sum = 0;
  int64_t count = 0;

  // `value` counts `n` times (a mean loss over n samples); n > 0.
  void update(double value, int64_t n = 1) {
    val = value;
    sum += value * static_cast<double>(n);
    count += n;
    avg = sum / static_cast<double>(count);
  }
  void reset() { *this = Meter{}; }
};

}  // namespace ddprun::record
