// A run's trace, in the trace event format of Chrome and Perfetto: what each rank did when, on one clock.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ddprun::record {

// A piece of time of one thread. Spans of a thread lie one after the other, or one within the other.
struct Span {
  std::string name;
  int64_t begin = 0, end = 0;  // nanoseconds of std::chrono::steady_clock, which the processes of a host share
  int64_t thread = 0;
  std::vector<std::pair<std::string, int64_t>> args;  // shown with it
};

// What one rank did.
struct RankTrace {
  std::vector<Span> spans;
  std::vector<std::pair<int64_t, std::string>> threads;  // number and name, in the order in which they are shown
};

// Writes <run_dir>/trace/rank<N>.json, one rank's part. Throws Error(failure) with path and errno's words.
void write_trace(const std::string& run_dir, int rank, const RankTrace& trace);

// Puts the parts of all ranks together: <run_dir>/trace/trace.json, each rank a process of its number, time from the
// first span. The parts are removed. Once, when all ranks have written theirs. Throws as write_trace() does, and
// Error(failure) where a part is missing.
void merge_traces(const std::string& run_dir, int ranks);

}  // namespace ddprun::record
