// A comparison as tables and sentences, for the console and for the page.
#pragma once

#include <string>
#include <vector>

#include "tools/compare/comparison.hpp"
#include "tools/report/page.hpp"

namespace ddprun::compare {

report::TitledTable figures_table(const Comparison& comparison);  // a row a variant
report::TitledTable split_table(const Comparison& comparison);    // a row a part, a column a variant
report::TitledTable verdict_table(const Comparison& comparison);  // a row a variant but the first
report::TitledTable loss_table(const Comparison& comparison);     // some steps, a column a variant

// The answer: a sentence for each variant against the first, the noise floor, the ceiling.
std::vector<std::string> answers(const Comparison& comparison);
// What qualifies it: runs that were not interleaved, work that differs, too few runs.
std::vector<std::string> warnings(const Comparison& comparison);
// Do they learn the same? A title and its sentences for each variant, and for each against the first.
std::vector<std::pair<std::string, std::vector<std::string>>> parity_sentences(const Comparison& comparison);

// "gate 'b/a <= 1.02' does not hold: 1.012, 95 % interval 0.98 to 1.04".
std::string text(const GateResult& result);

// All of it, for the console.
std::string text(const Comparison& comparison);

}  // namespace ddprun::compare
