// One step of a run's trace/trace.json, which is in the trace event format of Chrome and Perfetto.
#pragma once

#include <optional>
#include <string>

#include "tools/report/chart.hpp"

namespace ddprun::report {

// Forward, backward and optimizer of the last traced step and the allreduce of each bucket, two lanes per rank; times
// in milliseconds from the step's start. It reads complete events ("ph": "X") with those four names and with args
// {"step", "bucket", "bytes"}, whose pid is the rank, and ignores others. Returns nothing if the run was not traced.
// Throws Error(usage) with path and reason if the file is no such trace.
std::optional<Chart> step_timeline(const std::string& run_dir);

}  // namespace ddprun::report
