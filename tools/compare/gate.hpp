// `--gate 'b/a <= 1.02'`: a pass or fail result for scripts.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tools/compare/statistics.hpp"

namespace ddprun::compare {

// The ratio of the step times of two variants, and its limit.
struct Gate {
  std::string text;
  std::size_t over = 0, under = 0;  // variants
  bool at_most = true;              // else at least
  double bound = 1;
};

// "b/a <= 1.02", "2/1 < 0.95", and ">=" and ">" likewise; variants by name or by number from 1. Throws Error(usage)
// with what was expected.
Gate parse_gate(const std::string& text, const std::vector<std::string>& names);

// Holds if the whole 95 % interval is within the limit: the runs must show it, not only fail to refute it. So a gate
// never passes because there are too few runs.
bool holds(const Gate& gate, const Ratio& ratio);

}  // namespace ddprun::compare
