#include <chrono>

#include "cli/commands.hpp"
#include "cli/config/text.hpp"
#include "launch/supervisor.hpp"

namespace ddprun::app {

ExitCode launch(const Arguments& arguments) {
  launch::Job job = console::job_of(arguments.nodes, std::chrono::seconds(30));
  job.command = arguments.program;
  job.torchrun_variables = true;
  if (!arguments.grace.empty()) {
    const auto seconds = config::read_duration(arguments.grace);
    if (!seconds || *seconds > 24 * 60 * 60) {
      throw Error(ExitCode::usage,
                  "--grace " + arguments.grace + ": expected a duration of at most 24h, such as 30s, 500ms or 2m");
    }
    job.grace = config::milliseconds(*seconds);
  }
  return launch::supervise(job);
}

}  // namespace ddprun::app
