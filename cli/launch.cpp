#include <chrono>

#include "cli/commands.hpp"
#include "ddprun/plugin/options.hpp"
#include "launch/supervisor.hpp"

namespace ddprun::app {

ExitCode launch(const Arguments& arguments) {
  launch::Job job = console::job_of(arguments.nodes, std::chrono::seconds(30));
  job.command = arguments.program;
  job.torchrun_variables = true;
  if (!arguments.grace.empty()) {
    const auto grace = duration_option("--grace", "30s", nullptr, "24h", "as launch.grace");
    const std::string error = value_error(grace, arguments.grace);
    if (!error.empty()) throw Error(ExitCode::usage, "--grace " + arguments.grace + ": " + error);
    job.grace = std::chrono::round<std::chrono::milliseconds>(*parse_duration(arguments.grace));
  }
  return launch::supervise(job);
}

}  // namespace ddprun::app
