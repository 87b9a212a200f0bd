// The links that a prediction is based on: fitted to the allreduces in files of `ddprun bench --json`.
#pragma once

#include <cstdint>
#include <string>
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

// One case, as a training run calls it: in place, in memory of the backend if it has its own.
struct BenchRow {
  std::string backend;
  std::string algorithm;  // as served
  Shape shape;
  double bytes = 0;
  double seconds = 0;       // the median of all samples
  std::string requested{};  // the algorithm as asked for, such as "auto"
};

// The rows of all files. Throws Error(usage) with the path if a file cannot be read, has other content or no such row,
// or if it was measured between hosts that do not have one rank each. With `any_hosts`, they may have several; `shape`
// then has their average.
std::vector<BenchRow> read_bench(const std::vector<std::string>& paths, bool any_hosts = false);

// One algorithm of one backend, between hosts or within a host.
struct FittedLink {
  std::string backend;
  std::string name;  // of the algorithm, as the backend calls it
  Algorithm algorithm = Algorithm::ring;
  bool is_within = false;
  std::vector<BenchRow> rows;
  Link link;  // with a misfit for each row

  // "gloo ring between hosts"
  std::string text() const;
};

// Rows between hosts, and rows within a host of exactly `per_host` ranks. Rows of shm are those of hierarchical within
// a host, for all backends. Rows of an algorithm whose cost is not known are left out, and rows that do not show the
// time of a single call (shows_single_calls()). Throws Error(usage) if no row is between hosts, if the rows of an
// algorithm cannot separate its latency from its bandwidth, or if its time does not grow with the size (beta is 0).
std::vector<FittedLink> fit_links(const std::vector<BenchRow>& rows, int64_t per_host);

// The links of one backend.
Links links_of(const std::vector<FittedLink>& fitted, const std::string& backend);

}  // namespace ddprun::predict
