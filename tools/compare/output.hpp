// A comparison as tables and sentences, as JSON, and as an HTML page with charts.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/compare/comparison.hpp"
#include "tools/report/page.hpp"

namespace ddprun::compare {

report::TitledTable figures_table(const Comparison& comparison);  // one row per variant
report::TitledTable split_table(const Comparison& comparison);    // one row per part, one column per variant
report::TitledTable verdict_table(const Comparison& comparison);  // one row per variant except the first
report::TitledTable loss_table(const Comparison& comparison);     // some steps, one column per variant

// The conclusions: a sentence for each variant against the first, the noise floor, the ceiling.
std::vector<std::string> answers(const Comparison& comparison);
// The limits of the conclusions: runs that were not interleaved, different work, no other setting, too few runs.
std::vector<std::string> warnings(const Comparison& comparison);
// Whether they learn the same: a title and sentences for each variant, and for each against the first.
std::vector<std::pair<std::string, std::vector<std::string>>> parity_sentences(const Comparison& comparison);

// "gate 'b/a <= 1.02' does not hold: b is 4.1 % slower than a (ratio of the times for a step 1.041, 95 % interval 1.032
// to 1.050)".
std::string text(const Comparison& comparison, const GateResult& result);

// All sentences and tables, for the console.
std::string text(const Comparison& comparison);

// The gain of several workers (ranks, or dp's devices) over one.
struct Speedup {
  double workers = 1;
  double speedup = 1;  // time of one / time of these, for equal samples; so also the gain of throughput

  double efficiency() const { return speedup / workers; }
  double time_saved() const { return 1 - 1 / speedup; }
};
// Times are compared per sample, so that a step with another global batch is a fair comparison.
Speedup speedup_of(const Figures& one, const Figures& several, double workers);

// "compute-bound" if compute takes more of the step than all waiting; else by the longest wait: "data-bound" or
// "communication-bound".
const char* bound_of(const Split& split);

// The variants with several workers, with their gain over the first one that has one. Empty if there is no such pair.
std::vector<std::pair<const Member*, Speedup>> speedups_of(const Comparison& comparison);

// For each of them, next to the variant with one worker: total and average batch time, time saved, throughput and gain,
// speed-up against the ideal, efficiency, shares of compute and data. Requires one.
report::TitledTable speedup_table(const Comparison& comparison);

// compare.json; docs/comparing.md describes it.
std::string to_json(const Comparison& comparison);

// The conclusions; four charts (total time, average batch, throughput, gain); the parts of a step, in seconds and in
// per cent; losses; step time over steps and its distribution; the tables.
report::Page page_of(const Comparison& comparison);

// Whether a page can be drawn, which is better known before hours of runs. If not, one warning says why and what to do;
// the figures are still printed and saved.
bool can_draw();

}  // namespace ddprun::compare
