// What several workers gain over one: the table of DDP tutorials.
#pragma once

#include <vector>

#include "tools/compare/comparison.hpp"
#include "tools/report/page.hpp"

namespace ddprun::compare {

// What several workers (ranks, or dp's devices) gain over one.
struct Speedup {
  double workers = 1;
  double speedup = 1;          // time of one / time of these, for equal samples
  double efficiency = 1;       // speed-up / workers
  double time_saved = 0;       // 1 - 1 / speed-up
  double throughput_gain = 1;  // throughput / that of one
};
// The times are compared per sample, so that a step with another global batch is fair to both.
Speedup speedup_of(const Figures& one, const Figures& several, double workers);

// "compute-bound" where computing takes more of the step than waiting for data and for others, else what it waits for
// most: "data-bound", "communication-bound"; "not known" where most of it is a CUDA graph, which may be either.
const char* bound_of(const Split& split);

// For each variant of several workers, next to the first that has one: total and average-batch time, time saved,
// throughput and gain, speed-up against the ideal, efficiency, shares of compute and data. Empty where the
// variants have no such pair.
std::vector<report::TitledTable> speedup_tables(const Comparison& comparison);

}  // namespace ddprun::compare
