// One step of a run's trace/trace.json, which is in the trace event format of Chrome and Perfetto.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/report/chart.hpp"

namespace ddprun::report {

struct TraceEvent {
  std::string name;  // "forward", "backward", "optimizer", "allreduce"; "ready": a bucket had all its gradients
  int64_t rank = 0, step = 0;
  int64_t bucket = -1, bytes = 0;  // of an allreduce; of "ready" the bucket
  double begin = 0, end = 0;       // microseconds
};

// The events with these names and with args {"step", "bucket", "bytes"}, whose pid is the rank; others are ignored.
// Throws Error(usage) with path and reason if the file is no such trace.
std::vector<TraceEvent> read_trace(const std::string& path);

// Forward, backward and optimizer of the last traced step and the allreduce of each bucket, two lanes per rank; times
// in milliseconds from the step's start. Returns nothing if the run was not traced. Throws as read_trace().
std::optional<Chart> step_timeline(const std::string& run_dir);

}  // namespace ddprun::report
