// The comparison as a page with charts.
#pragma once

#include "tools/compare/comparison.hpp"
#include "tools/report/page.hpp"

namespace ddprun::compare {

// The answer; the 2x2 chart (total time, average batch, throughput, gain); where a step's time goes, grouped and in per
// cent; losses; step time over steps with its distribution; the tables.
report::Page page_of(const Comparison& comparison);

}  // namespace ddprun::compare
