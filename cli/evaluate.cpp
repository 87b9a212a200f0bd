#include "cli/commands.hpp"
#include "cli/console/program.hpp"
#include "cli/run/run.hpp"
#include "launch/supervisor.hpp"
#include "launch/world.hpp"
#include "record/run_dir.hpp"

namespace ddprun::app {
namespace {

// The arguments for a rank, with all paths resolved, so that it need not search again.
std::vector<std::string> rank_command(const Arguments& arguments, const run::Evaluated& found) {
  std::vector<std::string> command = {console::this_program(), "evaluate", "--checkpoint",
                                      found.checkpoint,        "--config", found.config};
  for (const std::string& override_ : arguments.overrides) command.insert(command.end(), {"--set", override_});
  for (const std::string& path : arguments.plugin_paths) command.insert(command.end(), {"--plugin-path", path});
  return command;
}

}  // namespace

ExitCode evaluate(const Arguments& arguments) {
  const run::Evaluated found = run::find_evaluated(record::named_run(arguments.checkpoint), arguments.config);
  config::Loaded loaded = config::load(found.config, arguments.overrides);
  const auto registry = plugin::Registry::standard(arguments.plugin_paths);
  if (const auto world = launch::discover(std::nullopt)) {
    run::run_evaluation(std::move(loaded), found.checkpoint, *world, registry);
    return ExitCode::ok;
  }
  const int nproc = run::ranks_of(loaded);
  if (nproc == 1) {
    run::run_evaluation(std::move(loaded), found.checkpoint, launch::World{}, registry);
    return ExitCode::ok;
  }
  launch::Job job;
  job.forked = std::make_shared<launch::ForkedRanks>(nproc, engine);  // before any plugin is loaded
  run::check_evaluation(loaded, found.checkpoint, registry, nproc);
  job.command = rank_command(arguments, found);
  job.nproc = nproc;
  return launch::supervise(job);
}

}  // namespace ddprun::app
