// From the spans that each rank has to the trace of the run.
#pragma once

#include <string>

#include "app/run/group.hpp"
#include "train/loop/tracer.hpp"

namespace ddprun::run {

// The steps that log.trace_steps asks for. Throws Error(usage) for one that lies beyond the run.
std::vector<int64_t> steps_to_trace(const config::Loaded& loaded, int64_t steps_per_epoch);

// Writes this rank's part; rank 0 puts all together. Collective.
void write_trace(const train::Tracer& tracer, Group& group, const launch::World& world, const std::string& run_dir,
                 std::chrono::milliseconds timeout);

}  // namespace ddprun::run
