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

// Writes <run_dir>/trace/rank<N>.json for one rank. Throws Error(failure) with path and errno's text.
void write_trace(const std::string& run_dir, int rank, const RankTrace& trace);

// Merges the files of all ranks into <run_dir>/trace/trace.json. Each rank is a process with its rank as number; time
// starts at the first span. Removes the files of the ranks. Call it once, when all ranks have written theirs. Throws as
// write_trace() does, and Error(failure) if a file is missing.
void merge_traces(const std::string& run_dir, int ranks);

}  // namespace ddprun::record
