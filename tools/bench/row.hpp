// One line of the table: a case of a variant, over all rounds.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/bench/plan.hpp"
#include "tools/lib/benchmark.hpp"

namespace ddprun::bench {

struct Row {
  const Variant* variant = nullptr;  // of the plan, which outlives it
  comm::BenchmarkCase what;
  std::vector<comm::BenchmarkResult> rounds;

  std::size_t bytes() const { return comm::bytes_of(what, variant->ranks); }
  std::size_t count() const { return comm::count_of(what, variant->ranks); }
  const comm::Execution& execution() const { return rounds.back().execution; }
  uint64_t wrong() const;
  // The time of one call in seconds, over the samples of all rounds. 0.5 is the median.
  double quantile(double share) const;
  // At the median: bytes / time, and that times comm::bus_factor(), in bytes per second.
  double algbw() const;
  double busbw() const;
};

// Without rounds yet. Sorted by collective, ranks and size, so that rows to compare are next to each other.
std::vector<Row> rows_of(const Plan& plan);

}  // namespace ddprun::bench
