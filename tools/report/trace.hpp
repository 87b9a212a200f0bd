// One step out of a run's trace/trace.json, which is in the trace event format of Chrome and Perfetto.
#pragma once

#include <optional>
#include <string>

#include "tools/report/chart.hpp"

namespace ddprun::report {

// Forward, backward and optimizer of the last traced step and the allreduce of each bucket, two lanes a rank; the time
// in milliseconds from the step's begin. Read are complete events ("ph": "X") of those four names with
// args {"step", "bucket", "bytes"}, whose pid is the rank; all others are passed over. Nothing where the run was not
// traced. Throws Error(usage) with path and reason where the file is no such trace.
std::optional<Chart> step_timeline(const std::string& run_dir);

}  // namespace ddprun::report
