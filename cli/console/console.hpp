// The lines that a run prints: the summary and the learned values, which end in a newline, to stdout; the rest to
// stderr.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "ddprun/records.hpp"

namespace ddprun::console {

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

// `epoch 1 [50/469] rank 0: time 12.0 ms (13.0 ms) data 1.00 ms (1.00 ms) loss 0.4321 (0.5678) acc 87.50 (83.12)`: the
// mean since the last line and, in parentheses, that of the epoch so far; accuracy in percent.
struct StepLine {
  int64_t epoch = 1;      // from 1
  int64_t step = 1;       // in the epoch, from 1
  int64_t steps = 1;      // of the epoch
  int64_t since = 1;      // the first step of the averages; above 1 in a run that resumed within the epoch
  bool of_rank0 = false;  // there are other ranks
  Meter time;
  Meter data;
  Meter loss;      // weighted by the samples of each step
  Meter accuracy;  // 0..1, weighted likewise; never updated and not printed if accuracy is undefined
};
std::string step_line(const StepLine& line);

// `epoch 1 done in 6.21 s: train loss 0.4321, acc 87.50; test loss 0.3900, acc 88.01; train loss by rank 0.4310
// 0.4332`; values that were not measured are left out.
std::string epoch_line(const record::EpochRecord& epoch);

// The final table: results, times, and the parts of the average step with their percentages.
std::string summary_table(const record::Summary& summary);

// One line: "learned: weight 1.9998, bias 3.0004"; "" for none.
std::string learned_line(const std::vector<std::pair<std::string, double>>& learned);

}  // namespace ddprun::console
