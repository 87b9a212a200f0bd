#include "app/commands.hpp"
#include "launch/supervisor.hpp"

namespace ddprun::app {

ExitCode launch(const Arguments& arguments) {
  const console::NodeOptions& options = arguments.nodes;
  launch::Job job;
  job.command = arguments.program;
  job.nproc = options.nproc.value_or(1);
  job.max_restarts = options.max_restarts.value_or(0);
  job.nodes = console::nodes_of(options, options.insecure, std::chrono::seconds(30));
  job.torchrun_variables = true;
  return launch::supervise(job);
}

}  // namespace ddprun::app
