// The gain of several workers over one: the table of DDP tutorials.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/compare/comparison.hpp"
#include "tools/report/page.hpp"

namespace ddprun::compare {

// The gain of several workers (ranks, or dp's devices) over one.
struct Speedup {
  double workers = 1;
  double speedup = 1;          // time of one / time of these, for equal samples
  double efficiency = 1;       // speed-up / workers
  double time_saved = 0;       // 1 - 1 / speed-up
  double throughput_gain = 1;  // throughput / that of one
};
// Times are compared per sample, so that a step with another global batch is a fair comparison.
Speedup speedup_of(const Figures& one, const Figures& several, double workers);

// "compute-bound" if compute takes more of the step than all waiting; else by the longest wait: "data-bound" or
// "communication-bound". "not known" if a CUDA graph is most of the step, because its parts are not known.
const char* bound_of(const Split& split);

// Of a member with several workers, over the first variant with one; NaN if there is none.
double efficiency_of(const Comparison& comparison, const Member& member);

// The variants with several workers, with their gain over the first one that has one. Empty if there is no such pair.
std::vector<std::pair<std::string, Speedup>> speedups_of(const Comparison& comparison);

// For each variant with several workers, next to the first variant with one: total and average batch time, time saved,
// throughput and gain, speed-up against the ideal, efficiency, shares of compute and data. Empty if there is no such
// pair.
std::vector<report::TitledTable> speedup_tables(const Comparison& comparison);

}  // namespace ddprun::compare
