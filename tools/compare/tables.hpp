// A comparison as tables and sentences, for the console and for the page.
#pragma once

#include <string>
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
std::string text(const GateResult& result);

// All sentences and tables, for the console.
std::string text(const Comparison& comparison);

}  // namespace ddprun::compare
