#include "cli/run/tracing.hpp"

#include <algorithm>

#include "cli/run/step_options.hpp"
#include "comm/clock_offset.hpp"
#include "ddprun/error.hpp"

namespace ddprun::run {

std::vector<int64_t> steps_to_trace(const config::Loaded& loaded, int64_t steps_per_epoch) {
  const std::vector<int64_t>& chosen = loaded.experiment.log.trace_steps;
  const int64_t steps = steps_of(loaded.experiment.train, steps_per_epoch);
  if (!chosen.empty() && *std::max_element(chosen.begin(), chosen.end()) > steps) {
    throw Error(ExitCode::usage,
                config::error(loaded.sources, "log.trace_steps",
                              "the run has only " + std::to_string(steps) + (steps == 1 ? " step" : " steps")));
  }
  return chosen;
}

record::RankTrace common_trace(const train::Tracer& tracer, Group& group, const launch::World& world,
                               std::chrono::milliseconds timeout) {
  record::RankTrace trace = tracer.trace();
  if (world.on_one_host() || group.backend == nullptr) return trace;
  const int64_t ahead = comm::clock_offset(*group.backend, timeout).count();
  for (record::Span& span : trace.spans) {
    span.begin -= ahead;
    span.end -= ahead;
  }
  return trace;
}

void merge_traces(Group& group, const launch::World& world, const std::string& run_dir,
                  std::chrono::milliseconds timeout) {
  if (group.backend != nullptr) group.backend->barrier().wait(timeout);
  if (world.rank == 0) record::merge_traces(run_dir, world.size);
}

}  // namespace ddprun::run
