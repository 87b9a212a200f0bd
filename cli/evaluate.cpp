#include "cli/commands.hpp"
#include "cli/console/program.hpp"
#include "cli/run/run.hpp"
#include "launch/supervisor.hpp"
#include "launch/world.hpp"
#include "record/run_dir.hpp"

namespace ddprun::app {

ExitCode evaluate(const Arguments& arguments) {
  const run::Evaluated found = run::find_evaluated(record::named_run(arguments.checkpoint), arguments.config);
  const config::Loaded loaded = config::load(found.config, arguments.overrides);
  const auto registry = plugin::Registry::standard(arguments.plugin_paths);
  const auto be_rank = [&](const launch::World& world) {
    run::run_evaluation(loaded, found.checkpoint, world, registry);
    return ExitCode::ok;
  };
  if (const auto world = launch::discover(std::nullopt)) return be_rank(*world);
  launch::Job job;
  job.nproc = run::ranks_of(loaded);
  if (job.nproc == 1) return be_rank({});
  job.command = arguments.argv;
  job.command[0] = console::this_program();
  run::check_evaluation(loaded, found.checkpoint, registry, job.nproc);
  return launch::supervise(std::move(job));
}

}  // namespace ddprun::app
