// The allreduces in files of `ddprun bench --json`.
#pragma once

#include <string>
#include <vector>

#include "tools/predict/cost.hpp"

namespace ddprun::predict {

// One case, as a training run calls it: in place, in memory of the backend if it has its own.
struct BenchRow {
  std::string backend;
  std::string algorithm;  // as served
  Shape shape;
  double bytes = 0;
  double seconds = 0;          // the median of all samples
  std::vector<double> rounds;  // seconds: the median of each round
  std::string requested{};     // the algorithm as asked for, such as "auto"
};

// The rows of all files. Throws Error(usage) with the path if a file cannot be read, has other content or no such row,
// or if it was measured between hosts that do not have one rank each.
std::vector<BenchRow> read_bench(const std::vector<std::string>& paths);

// The rows of one file, for which hosts may have several ranks; `shape` then has their average. Throws as read_bench().
std::vector<BenchRow> read_bench_of_any_hosts(const std::string& path);

}  // namespace ddprun::predict
