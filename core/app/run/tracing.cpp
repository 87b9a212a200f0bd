#include "app/run/tracing.hpp"

#include <algorithm>

#include "app/run/step_options.hpp"
#include "ddprun/error.hpp"

namespace ddprun::run {

std::vector<int64_t> steps_to_trace(const config::Loaded& loaded, int64_t steps_per_epoch) {
  const std::vector<int64_t>& chosen = loaded.experiment.log.trace_steps;
  const int64_t steps = steps_of(loaded.experiment.train, steps_per_epoch);
  if (!chosen.empty() && *std::max_element(chosen.begin(), chosen.end()) > steps) {
    throw Error(ExitCode::usage, config::error(loaded.sources, "log.trace_steps",
                                               "the run has only " + std::to_string(steps) + " steps"));
  }
  return chosen;
}

void write_trace(const train::Tracer& tracer, Group& group, const launch::World& world, const std::string& run_dir,
                 std::chrono::milliseconds timeout) {
  record::write_trace(run_dir, world.rank, tracer.trace());
  if (group.backend != nullptr) group.backend->barrier().wait(timeout);
  if (world.rank == 0) record::merge_traces(run_dir, world.size);
}

}  // namespace ddprun::run
