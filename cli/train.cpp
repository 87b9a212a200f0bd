#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <utility>

#include "base/log.hpp"
#include "checkpoint/folder.hpp"
#include "cli/config/text.hpp"
#include "cli/console/program.hpp"
#include "cli/console/progress_bar.hpp"
#include "launch/cores.hpp"
#include "launch/signals.hpp"
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

// Starts of one job by ddprun's launcher: each has a run folder, and a restart resumes from the newest commit of those
// before.
class Starts {
 public:
  Starts(const config::Loaded& loaded, const Arguments& arguments, int nproc)
      : loaded_(loaded), arguments_(arguments), nproc_(nproc) {
    command_ = arguments.argv;
    command_[0] = console::this_program();
  }

  // The result of find_resume(), because "latest" and "auto" might be a later run when the ranks start. With several
  // nodes, rank 0 finds it for all.
  void first(launch::Job& job) {
    const bool found = job.nodes.count == 1 && loaded_.sources.given("checkpoint.resume");
    set(job, found ? std::optional(loaded_.experiment.checkpoint.resume) : std::nullopt);
  }

  void again(launch::Job& job) {
    if (!std::exchange(has_restarted_, true)) command_.insert(command_.end(), {"--set", "faults.kind=none"});
    for (auto run = runs_.rbegin(); run != runs_.rend(); ++run) {
      if (const std::string commit = run::newest_commit_in(*run); !commit.empty()) return set(job, commit);
    }
    set(job, std::nullopt);  // no commit yet: as the first start
  }

  // From the newest run folder with a checkpoint; "" if there is none.
  std::string how_to_resume() const {
    std::string text;
    for (auto run = runs_.rbegin(); run != runs_.rend() && text.empty(); ++run) {
      text = app::how_to_resume(arguments_, *run);
    }
    return text;
  }

  // What ranks were writing when they were killed. Call it when all have ended.
  void remove_left_overs() const {
    for (const std::string& run : runs_) {
      try {
        for (const char* folder : {"", "/checkpoints"}) checkpoint::remove_left_overs(run + folder);
      } catch (const Error& error) {
        log::debug(error.what());  // the last line of a job is the cause of its failure
      }
    }
  }

 private:
  void set(launch::Job& job, const std::optional<std::string>& resume) {
    job.command = command_;
    if (resume) job.command.insert(job.command.end(), {"--set", "checkpoint.resume=" + config::quoted(*resume)});
    if (job.nodes.rank != 0) return;  // rank 0 passes the paths to the ranks of other hosts
    runs_.push_back(run::prepare_run_dir(loaded_.experiment, nproc_));
    job.environment = {std::string(kRunDir) + "=" + runs_.back()};
    job.log_dir = run::log_dir(loaded_.experiment, runs_.back());
  }

  const config::Loaded& loaded_;
  const Arguments& arguments_;
  const int nproc_;
  std::vector<std::string> command_;
  bool has_restarted_ = false;
  std::vector<std::string> runs_;
};

void report_shared_cores(int nproc) {
  const int cores = launch::own_cores();
  if (cores == 0 || nproc <= cores) return;
  log::info(std::to_string(nproc) + " ranks share " + std::to_string(cores) + (cores == 1 ? " core" : " cores") +
            ": their times are not those of ranks with a core each; a step may take " +
            std::to_string((nproc + cores - 1) / cores) + " times as long, or more");
}

// The ranks of this host, and with --nnodes those of the other hosts too.
ExitCode launch_ranks(const config::Loaded& loaded, const Arguments& arguments, const plugin::Registry& registry,
                      int nproc, launch::Nodes nodes) {
  const config::Experiment& experiment = loaded.experiment;
  launch::Job job;
  job.nodes = std::move(nodes);
  job.nproc = nproc;
  job.max_restarts = static_cast<int>(experiment.launch.max_restarts);
  job.grace = seconds(experiment.launch.grace);
  run::check_devices(loaded, nproc);
  report_shared_cores(nproc);
  job.forked = std::make_shared<launch::ForkedRanks>(nproc, engine);  // before any plugin is loaded
  run::check(loaded, registry, job.nodes.count == 1 ? std::optional(nproc) : std::nullopt);

  Starts starts(loaded, arguments, nproc);
  starts.first(job);
  job.before_restart = [&](launch::Job& next, int) { starts.again(next); };
  job.advice = [&] { return starts.how_to_resume(); };
  const ExitCode code = launch::supervise(job);
  starts.remove_left_overs();
  return code;
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

void report_choice_by_test_set(const config::Experiment& experiment) {
  std::string keys;
  for (const auto& [key, metric] :
       {std::pair{"train.early_stop", experiment.train.early_stop}, {"checkpoint.best", experiment.checkpoint.best}}) {
    if (metric.starts_with("test.")) keys += (keys.empty() ? "" : " and ") + std::string(key) + " = \"" + metric + "\"";
  }
  if (keys.empty()) return;
  log::info("the test set chooses the epoch (" + keys +
            "), so its results are better than those on new data; data.validation avoids that");
}

// Processes started by another launcher would each train alone on all data.
void refuse_company_of_one_process(const config::Loaded& loaded, const launch::World& world) {
  if (loaded.experiment.strategy.kind == "ddp" || world.size == 1) return;
  throw Error(ExitCode::usage, config::error(loaded.sources, "strategy.kind",
                                             "trains in one process, and " + std::to_string(world.size) +
                                                 " were started; use strategy.kind = \"ddp\", or start one"));
}

}  // namespace

ExitCode train(const Arguments& arguments) {
  auto world = find_world(arguments);
  if (world) launch::hold_signal(SIGUSR2);  // for run::CollectivesFile
  config::Loaded loaded = load_experiment(arguments, world);
  // The launcher must have started as many ranks as the command line says. The number of the file is not compared, so
  // that one file can be used under any launcher.
  const bool is_ddp = loaded.experiment.strategy.kind == "ddp";
  if (world) world = console::discover(arguments.nodes, is_ddp ? run::explicit_nproc(loaded) : std::nullopt);
  choose_output(arguments, loaded.experiment.log.level);
  const auto registry = plugin::Registry::standard(arguments.plugin_paths);
  const auto how_to_resume = [&](const std::string& run_dir) { return app::how_to_resume(arguments, run_dir); };

  if (world) {
    launch::catch_stop_signals();
    refuse_company_of_one_process(loaded, *world);
    const char* run_dir = std::getenv(kRunDir);
    const bool own = world->is_own();
    world->insecure = loaded.experiment.launch.insecure;
    if (!own && world->rank == 0) {
      name_unused_keys(loaded);
      report_choice_by_test_set(loaded.experiment);
      log::info(world->launcher + " has started " + std::to_string(world->size) +
                (world->size == 1 ? " rank" : " ranks") +
                (loaded.sources.given("launch.nproc") ? "; launch.nproc is not used" : ""));
    }
    const bool own_log = !own || run_dir == nullptr;  // no launcher of this host keeps it
    return run::run_rank({std::move(loaded), *world, own && run_dir != nullptr ? run_dir : "", how_to_resume, own_log},
                         registry);
  }
  const config::Experiment::Launch& settings = loaded.experiment.launch;
  launch::Nodes nodes = console::nodes_of(arguments.nodes, settings.insecure, seconds(settings.timeout));
  const bool one_node = nodes.count == 1;
  if (one_node && !run::find_resume(loaded)) return ExitCode::ok;
  const int nproc = run::ranks_of(loaded);
  name_unused_keys(loaded);
  report_choice_by_test_set(loaded.experiment);
  // A launcher is needed for a restart too.
  if (nproc > 1 || !one_node || settings.max_restarts > 0) {
    return launch_ranks(loaded, arguments, registry, nproc, std::move(nodes));
  }
  launch::catch_stop_signals();
  if (!arguments.quiet) launch::acknowledge_stop_signals(console::terminal_columns() > 0);
  launch::hold_signal(SIGUSR2);
  constexpr bool own_log = true;
  return run::run_rank({std::move(loaded), launch::World{}, "", how_to_resume, own_log}, registry);
}

}  // namespace ddprun::app
