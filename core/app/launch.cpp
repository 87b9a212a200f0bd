#include "app/commands.hpp"
#include "launch/supervisor.hpp"

namespace ddprun::app {

ExitCode launch(const Arguments& arguments) {
  launch::Job job = console::job_of(arguments.nodes, std::chrono::seconds(30));
  job.command = arguments.program;
  job.torchrun_variables = true;
  return launch::supervise(job);
}

}  // namespace ddprun::app
