#include <chrono>
#include <cmath>
#include <cstdlib>

#include "app/command_line.hpp"
#include "app/commands.hpp"
#include "app/run/checks.hpp"
#include "app/run/rank.hpp"
#include "base/log.hpp"
#include "checkpoint/folder.hpp"
#include "config/text.hpp"
#include "console/program.hpp"
#include "launch/stop_signals.hpp"
#include "launch/supervisor.hpp"
#include "launch/world.hpp"

namespace ddprun::app {
namespace {

std::chrono::milliseconds seconds(double count) {
  return std::chrono::milliseconds(std::llround(count * 1000));
}

constexpr const char* kRunDir = "DDPRUN_RUN_DIR";

log::Level level_of(const std::string& name) {
  if (name == "debug") return log::Level::debug;
  if (name == "warning") return log::Level::warning;
  if (name == "error") return log::Level::error;
  return log::Level::info;
}

// The command line overrides the file's log.level. Unlike log.level, --quiet also removes the progress bar. Neither is
// part of the experiment, so config.toml stays the same.
void choose_output(const Arguments& arguments, const std::string& level) {
  log::set_level(arguments.quiet ? log::Level::error : arguments.verbose ? log::Level::debug : level_of(level));
  if (arguments.quiet) setenv("DDPRUN_TTY", "0", 1);
}

// The ranks of this host, and with several nodes those of the other hosts too.
ExitCode launch_ranks(const config::Loaded& loaded, const Arguments& arguments, const plugin::Registry& registry,
                      int nproc, const launch::Nodes& nodes) {
  const config::Experiment& experiment = loaded.experiment;
  launch::Job job;
  job.nodes = nodes;
  job.max_restarts = static_cast<int>(experiment.launch.max_restarts);
  const bool one_host = job.nodes.count == 1;
  run::check_devices(loaded, nproc);
  run::check(loaded, registry, one_host ? std::optional(nproc) : std::nullopt);

  job.command = arguments.argv;
  job.command[0] = console::this_program();
  // The result of find_resume(), because "latest" and "auto" might be a later run when the ranks start.
  if (loaded.sources.given("checkpoint.resume")) {
    const std::string resume = config::quoted(experiment.checkpoint.resume);
    job.command.insert(job.command.end(), {"--set", "checkpoint.resume=" + resume});
  }
  job.nproc = nproc;
  // Rank 0 passes the path of the run folder to the ranks of other hosts.
  if (job.nodes.rank == 0) {
    const std::string run_dir = run::prepare_run_dir(experiment, nproc);
    job.environment = {std::string(kRunDir) + "=" + run_dir};
    job.log_dir = run::log_dir(experiment, run_dir);
    // All ranks resume from what rank 0 finds.
    job.before_restart = [run_dir](launch::Job& restarted, int) {
      if (checkpoint::list_commits(run_dir + "/checkpoints").empty()) return;
      restarted.command.insert(restarted.command.end(), {"--set", "checkpoint.resume=" + config::quoted(run_dir)});
    };
  }
  return launch::supervise(job);
}

// launch.nproc if --set gives it: the launcher must have started as many ranks on this host. That of the file is not
// compared, so that one file can be used under any launcher.
std::optional<int> explicit_nproc(const config::Loaded& loaded) {
  const config::Place* place = loaded.sources.find("launch.nproc");
  const bool given = place != nullptr && place->where.starts_with("--set") && loaded.experiment.launch.nproc > 0;
  if (!given || loaded.experiment.strategy.kind != "ddp") return std::nullopt;
  return static_cast<int>(loaded.experiment.launch.nproc);
}

// Unused keys are allowed, so that one file can be varied, but are always reported.
void name_unused_keys(const config::Loaded& loaded) {
  std::string names;
  for (const std::string& key : config::unused_keys(loaded.experiment, loaded.sources)) {
    if (!names.empty()) names += ", ";
    names += key;
  }
  if (names.empty()) return;
  log::info("not used by strategy \"" + loaded.experiment.strategy.kind + "\" on device \"" +
            loaded.experiment.launch.device + "\": " + names);
}

// Processes started by another launcher would each train alone on all data.
void refuse_company_of_one_process(const config::Loaded& loaded, const launch::World& world) {
  if (loaded.experiment.strategy.kind == "ddp" || world.size == 1) return;
  throw Error(ExitCode::usage, config::error(loaded.sources, "strategy.kind",
                                             "trains in one process, and " + std::to_string(world.size) +
                                                 " were started; use strategy.kind = \"ddp\", or start one"));
}

// The command line's options as keys of the config.
std::vector<std::string> overrides_of(const Arguments& arguments) {
  std::vector<std::string> overrides = arguments.overrides;
  const auto add = [&](const char* key, std::optional<int> value) {
    if (value) overrides.push_back(std::string(key) + "=" + std::to_string(*value));
  };
  add("launch.nproc", arguments.nodes.nproc);
  add("launch.max_restarts", arguments.nodes.max_restarts);
  return overrides;
}

// Where the ranks are that another process has started, this one among them.
std::optional<launch::World> discover(const console::NodeOptions& options, std::optional<int> nproc) {
  const bool is_rank = std::getenv("DDPRUN_RANK") != nullptr;  // of ddprun's launcher, whose arguments it has
  if (options.start_ranks() && !is_rank) return std::nullopt;
  return launch::discover(nproc);
}

std::optional<int64_t> ranks_elsewhere(const console::NodeOptions& options, const std::optional<launch::World>& world) {
  if (world) return world->on_one_host() ? std::nullopt : std::optional<int64_t>(world->size);
  return options.nnodes.value_or(1) > 1 ? std::optional<int64_t>(0) : std::nullopt;
}

}  // namespace

ExitCode train(const Arguments& arguments) {
  console::use_local_rank(arguments.nodes);
  auto world = discover(arguments.nodes, std::nullopt);
  config::Loaded loaded =
      config::load(arguments.config, overrides_of(arguments), ranks_elsewhere(arguments.nodes, world));
  if (world) world = discover(arguments.nodes, explicit_nproc(loaded));
  choose_output(arguments, loaded.experiment.log.level);
  const auto registry = plugin::Registry::standard(arguments.plugin_paths);

  if (world) {
    launch::catch_stop_signals();
    refuse_company_of_one_process(loaded, *world);
    const char* run_dir = std::getenv(kRunDir);
    const bool own = world->is_own();
    world->insecure = loaded.experiment.launch.insecure;
    if (!own && world->rank == 0) {
      name_unused_keys(loaded);
      log::info(world->launcher + " has started " + std::to_string(world->size) + " ranks" +
                (loaded.sources.given("launch.nproc") ? "; launch.nproc is not used" : ""));
    }
    const bool own_log = !own || run_dir == nullptr;  // no launcher of this host keeps it
    return run::run_rank(
        {std::move(loaded), *world, own && run_dir != nullptr ? run_dir : "", training_command(arguments), own_log},
        registry);
  }
  const auto& settings = loaded.experiment.launch;
  const launch::Nodes nodes = console::nodes_of(arguments.nodes, settings.insecure, seconds(settings.timeout));
  if (!run::find_resume(loaded)) return ExitCode::ok;
  name_unused_keys(loaded);
  const int nproc = run::ranks_of(loaded);
  if (nproc > 1 || nodes.count > 1) return launch_ranks(loaded, arguments, registry, nproc, nodes);
  launch::catch_stop_signals();
  constexpr bool own_log = true;
  return run::run_rank({std::move(loaded), launch::World{}, "", training_command(arguments), own_log}, registry);
}

}  // namespace ddprun::app
