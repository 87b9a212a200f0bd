#include <sys/prctl.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "base/log.hpp"
#include "checkpoint/folder.hpp"
#include "cli/commands.hpp"
#include "cli/console/program.hpp"
#include "cli/console/progress_bar.hpp"
#include "cli/console/table.hpp"
#include "cli/run/run.hpp"
#include "ddprun/plugin/host.hpp"
#include "launch/signals.hpp"
#include "launch/supervisor.hpp"
#include "launch/world.hpp"

namespace ddprun::app {
namespace {

constexpr const char* kRunDir = "DDPRUN_RUN_DIR";

// --quiet also removes the progress bar. Neither option is part of the experiment, so config.toml stays the same.
void choose_output(const Arguments& arguments) {
  log::set_level(arguments.quiet ? log::Level::error : arguments.verbose ? log::Level::debug : log::Level::info);
  if (arguments.quiet) setenv("DDPRUN_TTY", "0", 1);
}

// What ranks were writing when they were killed. Call it when all have ended.
void remove_left_overs(const std::vector<std::string>& runs) {
  for (const std::string& run : runs) {
    try {
      for (const char* folder : {"", "/checkpoints"}) checkpoint::remove_left_overs(run + folder);
    } catch (const Error& error) {
      log::debug(error.what());  // the last line of a job is the cause of its failure
    }
  }
}

void report_shared_cores(int nproc) {
  const int cores = usable_cores();
  if (nproc <= cores) return;
  log::info(std::to_string(nproc) + " ranks share " + console::several(cores, "core") +
            ": their times are not those of ranks with a core each; a step may take " +
            std::to_string((nproc + cores - 1) / cores) + " times as long, or more");
}

// Unused keys are allowed, so that one file can be varied, but are always reported. So is a choice by the test set.
void report_settings(const config::Loaded& loaded) {
  const config::Experiment& experiment = loaded.experiment;
  std::string unused, keys;
  for (const std::string& key : config::unused_keys(experiment, loaded.sources)) {
    unused += (unused.empty() ? "" : ", ") + key;
  }
  if (!unused.empty()) {
    log::info("not used by strategy \"" + experiment.strategy.kind + "\" on device \"" + experiment.launch.device +
              "\": " + unused);
  }
  for (const auto& [key, metric] :
       {std::pair{"train.early_stop", experiment.train.early_stop}, {"checkpoint.best", experiment.checkpoint.best}}) {
    if (metric.starts_with("test.")) keys += (keys.empty() ? "" : " and ") + std::string(key) + " = \"" + metric + "\"";
  }
  if (keys.empty()) return;
  log::info("the test set chooses the epoch (" + keys +
            "), so its results are better than those on new data; data.validation avoids that");
}

// This process is a rank. `prepared`: that of the launcher from which it was forked; otherwise null.
ExitCode be_rank(const Arguments& arguments, const config::Loaded& loaded, const plugin::Registry& registry,
                 run::Prepared prepared) {
  // The launcher must have started as many ranks as the command line says. The number of the file is not compared, so
  // that one file can be used under any launcher.
  const bool is_ddp = loaded.experiment.strategy.kind == "ddp";
  launch::World world = console::discover(arguments.nodes, is_ddp ? run::explicit_nproc(loaded) : std::nullopt).value();
  // So that people and tools can find it: /proc/PID/environ of a rank that was forked is that of the launcher.
  ::prctl(PR_SET_NAME, ("ddprun-rank" + std::to_string(world.rank)).c_str());
  launch::hold_usr2();  // for run::CollectivesFile
  launch::catch_stop_signals();
  choose_output(arguments);
  // Processes started by another launcher would each train alone on all data.
  if (!is_ddp && world.size > 1) {
    throw Error(ExitCode::usage, config::error(loaded.sources, "strategy.kind",
                                               "trains in one process, and " + std::to_string(world.size) +
                                                   " were started; use strategy.kind = \"ddp\", or start one"));
  }
  const char* run_dir = std::getenv(kRunDir);
  const bool own = world.is_own();
  world.insecure = loaded.experiment.launch.insecure;
  if (!own && world.rank == 0) {
    report_settings(loaded);
    log::info(world.launcher + " has started " + console::several(world.size, "rank") +
              (loaded.sources.given("launch.nproc") ? "; launch.nproc is not used" : ""));
  }
  return run::run_rank(
      {loaded, world, std::move(prepared), own && run_dir != nullptr ? run_dir : "", arguments.nodes.least > 0},
      registry);
}

// With --nnodes LEAST:N, the ranks that are left must be able to go on, and to compute the same numbers.
void check_survival(const config::Loaded& loaded, const console::NodeOptions& nodes) {
  const config::Experiment& experiment = loaded.experiment;
  const config::Experiment::Strategy& strategy = experiment.strategy;
  const auto refuse_if = [&](bool wrong, const std::string& key, const std::string& what) {
    if (wrong) throw Error(ExitCode::usage, config::error(loaded.sources, key, "with --nnodes LEAST:N " + what));
  };
  if (nodes.least == 0) return;
  refuse_if(strategy.kind != "ddp" || strategy.virtual_ranks == 0, "strategy.virtual_ranks",
            "the ranks that are left need virtual ranks; set their number, such as 8");
  refuse_if(!strategy.broadcast_buffers, "strategy.broadcast_buffers",
            "must be true: a rank's own buffers die with it");
  refuse_if(strategy.zero > 0, "strategy.zero", "must be 0: a rank's part of the optimizer's state dies with it");
  refuse_if(strategy.hash_every > 0, "strategy.hash_every", "must be 0");
  refuse_if(experiment.log.parity_steps > 0, "log.parity_steps", "must be 0");
  refuse_if(experiment.launch.device == "cuda", "launch.device", "must be \"cpu\"");
}

// A fork would lose the threads that a plugin has started. Ranks are then started by exec.
bool has_one_thread() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}) == 1;
}

// The ranks of this host, and with --nnodes those of the other hosts too.
ExitCode launch_ranks(const config::Loaded& loaded, const Arguments& arguments, const plugin::Registry& registry,
                      int nproc, launch::Nodes nodes) {
  const config::Experiment& experiment = loaded.experiment;
  launch::Job job;
  job.nodes = std::move(nodes);
  job.nproc = nproc;
  job.max_restarts = static_cast<int>(experiment.launch.max_restarts);
  job.grace = config::milliseconds(experiment.launch.grace);
  run::check_devices(loaded, nproc);
  report_shared_cores(nproc);
  const bool one_node = job.nodes.count == 1;
  run::Prepared prepared = run::prepare(loaded, registry, one_node ? std::optional(nproc) : std::nullopt);
  // Otherwise each rank prepares the run itself: LibTorch looks for CUDA once, and only a rank may start it; ranks of
  // several hosts agree on the commit that they resume from.
  if (one_node && experiment.launch.device == "cpu" && has_one_thread()) {
    job.forked = [&, prepared = std::move(prepared)] {
      return engine([&] { return be_rank(arguments, loaded, registry, prepared); });
    };
  }
  prepared.reset();

  std::vector<std::string> command = arguments.argv, runs;  // the run folders of the first start and of each restart
  command[0] = console::this_program();
  const auto set_up = [&](launch::Job& next, const std::optional<std::string>& resume) {
    next.command = command;
    if (resume) next.command.insert(next.command.end(), {"--set", "checkpoint.resume=" + config::quoted(*resume)});
    if (next.nodes.rank != 0) return;  // rank 0 passes the paths to the ranks of other hosts
    runs.push_back(run::prepare_run_dir(experiment, nproc));
    next.environment = {std::string(kRunDir) + "=" + runs.back()};
    next.log_dir = run::log_dir(experiment, runs.back());
  };
  // The result of find_resume(), because "latest" and "auto" might be a later run when the ranks start. With several
  // nodes, rank 0 finds it for all.
  const bool found = one_node && loaded.sources.given("checkpoint.resume");
  set_up(job, found ? std::optional(experiment.checkpoint.resume) : std::nullopt);
  command.insert(command.end(), {"--set", "faults.kind=none"});
  job.before_restart = [&](launch::Job& next, int) {
    std::optional<std::string> newest;  // nothing without a commit: as the first start
    for (auto run = runs.rbegin(); run != runs.rend() && !newest; ++run) newest = run::newest_commit_in(*run);
    set_up(next, newest);
  };
  job.advice = [&] {
    std::string text;
    for (auto run = runs.rbegin(); run != runs.rend() && text.empty(); ++run) text = run::how_to_resume(*run);
    return text;
  };
  const ExitCode code = launch::supervise(std::move(job));
  remove_left_overs(runs);
  return code;
}

}  // namespace

ExitCode train(const Arguments& arguments) {
  const auto world = console::discover(arguments.nodes, std::nullopt);
  if (world) launch::hold_usr2();
  config::Loaded loaded = load_experiment(arguments, world);
  const auto registry = plugin::Registry::standard(arguments.plugin_paths);
  if (world) return be_rank(arguments, loaded, registry, nullptr);
  choose_output(arguments);
  check_survival(loaded, arguments.nodes);
  const config::Experiment::Launch& settings = loaded.experiment.launch;
  launch::Nodes nodes = console::nodes_of(arguments.nodes, settings.insecure, config::milliseconds(settings.timeout));
  const bool one_node = nodes.count == 1;
  if (one_node && !run::find_resume(loaded)) return ExitCode::ok;
  const int nproc = run::ranks_of(loaded);
  report_settings(loaded);
  // A launcher is needed for a restart too.
  if (nproc > 1 || !one_node || settings.max_restarts > 0 || nodes.survives()) {
    return launch_ranks(loaded, arguments, registry, nproc, std::move(nodes));
  }
  launch::catch_stop_signals();
  if (!arguments.quiet) launch::acknowledge_stop_signals(console::terminal_columns() > 0);
  launch::hold_usr2();
  return run::run_rank({loaded, launch::World{}, nullptr, ""}, registry);
}

}  // namespace ddprun::app
