// A run's trace, in the trace event format of Chrome and Perfetto: the activities of all ranks on one clock.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ddprun::record {

// An interval of one thread. Two spans of a thread are disjoint or nested.
struct Span {
  std::string name;
  // nanoseconds of std::chrono::steady_clock, which is the same for all processes of a host
  int64_t begin = 0, end = 0;
  int64_t thread = 0;
  std::vector<std::pair<std::string, int64_t>> args;  // shown with the span
};

// The trace of one rank.
struct RankTrace {
  std::vector<Span> spans;
  std::vector<std::pair<int64_t, std::string>> threads;  // number and name, in display order
};

// The events of one rank as JSON text, for write_trace().
std::string events_of(const RankTrace& trace, int rank);

// Writes <run_dir>/trace/trace.json from the events of all ranks. Each rank is a process with its rank as number; time
// starts at the first span. Throws Error(failure) with path and errno's text.
void write_trace(const std::string& run_dir, const std::vector<std::string>& ranks);

}  // namespace ddprun::record
