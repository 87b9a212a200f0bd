// The lines that a run prints. Functions return text that ends in a newline. The caller writes the summary, the learned
// values and the run folder to stdout, the rest to stderr.
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

// The content of the start banner.
struct Banner {
  std::string name;  // of the experiment
  std::string model;
  int64_t parameters = 0;  // elements
  std::string data;
  int64_t train_samples = 0;
  int64_t validation_samples = 0, test_samples = 0;  // that are evaluated
  std::string strategy;                              // "single", "dp", "ddp"
  std::string backend;                               // of ddp, otherwise ""
  std::string algorithm;
  std::string optimizer;
  double lr = 0;
  int lr_factor = 1;  // the number of ranks, if it multiplies lr
  // Further keys of these tables that are not the default: `amp = "bf16", accumulate = 4`.
  struct Settings {
    std::string data, strategy, optimizer, train;
  } settings;
  int world = 1;
  int64_t global_batch = 0;
  int64_t rank_batch = 0;
  std::string device;       // "cpu", "cuda:0 (NVIDIA H200)"
  int64_t threads = 0;      // per rank, or per device under dp
  std::string wait_policy;  // OMP_WAIT_POLICY; "" if it is not set
  int64_t devices = 0;      // of dp, otherwise 0
  bool gpu_present = true;  // false adds the line that there is no GPU
  int64_t epochs = 0;
  int64_t steps = 0;  // of a run that counts steps instead of epochs, otherwise 0
  int64_t steps_per_epoch = 0;
  int64_t seed = 0;
  std::string run_dir;
};
std::string banner(const Banner& banner);

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
