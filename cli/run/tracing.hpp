// Merges the spans of all ranks into the trace of the run.
#pragma once

#include <string>

#include "cli/run/group.hpp"
#include "train/loop/tracer.hpp"

namespace ddprun::run {

// The steps in log.trace_steps. Throws Error(usage) for a step beyond the end of the run.
std::vector<int64_t> steps_to_trace(const config::Loaded& loaded, int64_t steps_per_epoch);

// This rank's trace, on the clock of rank 0. Collective.
record::RankTrace common_trace(const train::Tracer& tracer, Group& group, const launch::World& world,
                               std::chrono::milliseconds timeout);

// Merges the traces of all ranks on rank 0. Collective.
void merge_traces(Group& group, const launch::World& world, const std::string& run_dir,
                  std::chrono::milliseconds timeout);

}  // namespace ddprun::run
