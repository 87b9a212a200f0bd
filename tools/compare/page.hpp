// The comparison as an HTML page with charts.
#pragma once

#include "tools/compare/comparison.hpp"
#include "tools/report/page.hpp"

namespace ddprun::compare {

// The conclusions; four charts (total time, average batch, throughput, gain); the parts of a step, in seconds and in
// per cent; losses; step time over steps and its distribution; the tables.
report::Page page_of(const Comparison& comparison);

}  // namespace ddprun::compare
