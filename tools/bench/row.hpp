// One line of the table: a case of a variant, over all rounds.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/bench/plan.hpp"
#include "comm/benchmark.hpp"

namespace ddprun::bench {

struct Row {
  const Variant* variant = nullptr;  // of the plan, which outlives it
  comm::BenchmarkCase what;
  std::vector<comm::BenchmarkResult> rounds;

  std::size_t bytes() const { return comm::bytes_of(what, variant->ranks); }
  std::size_t count() const { return comm::count_of(what, variant->ranks); }
  const comm::Execution& execution() const { return rounds.back().execution; }
  uint64_t wrong() const;
  // Of one call, in seconds, over the samples of all rounds. 0.5 is the median.
  double quantile(double share) const;
  // Bytes per second at the median: bytes / time, and that times comm::bus_factor().
  double algbw() const;
  double busbw() const;
};

// Without rounds yet: by collective, ranks and size, so that what is to be compared stands together.
std::vector<Row> rows_of(const Plan& plan);

}  // namespace ddprun::bench
