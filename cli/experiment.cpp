#include <cstdlib>
#include <filesystem>

#include "cli/commands.hpp"
#include "ddprun/plugin/host.hpp"

namespace ddprun::app {
namespace {

std::optional<int64_t> ranks_elsewhere(const console::NodeOptions& options, const std::optional<launch::World>& world) {
  if (world) return world->on_one_host() ? std::nullopt : std::optional<int64_t>(world->size);
  return options.nnodes.value_or(1) > 1 ? std::optional<int64_t>(0) : std::nullopt;
}

// The ranks of this host.
int64_t ranks_here(const config::Experiment& experiment, const std::optional<launch::World>& world) {
  if (world) return std::max(1, world->local_size);
  if (experiment.strategy.kind != "ddp") return 1;
  return experiment.launch.nproc > 0 ? experiment.launch.nproc : usable_cores();
}

}  // namespace

config::Loaded load_experiment(const Arguments& arguments, const std::optional<launch::World>& world) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::file_status status = fs::status(arguments.config, ignored);
  if (fs::is_fifo(status) || fs::is_character_file(status)) {
    throw Error(ExitCode::usage,
                arguments.config + ": can be read only once, and several processes read it; write it into a file");
  }
  std::vector<std::string> overrides = arguments.overrides;
  config::Typed typed;
  const auto add = [&](const std::string& key, const std::string& option, std::optional<int> count) {
    if (!count) return;
    overrides.push_back(key + "=" + std::to_string(*count));
    typed[overrides.back()] = option + " " + std::to_string(*count);
  };
  add("launch.nproc", "--nproc-per-node", arguments.nodes.nproc);
  add("launch.max_restarts", "--max-restarts", arguments.nodes.max_restarts);
  return config::load(arguments.config, overrides, ranks_elsewhere(arguments.nodes, world), typed);
}

void choose_wait_policy(const Arguments& arguments) {
  if (std::getenv("OMP_WAIT_POLICY") != nullptr || std::getenv("GOMP_SPINCOUNT") != nullptr) return;
  const auto world = console::discover(arguments.nodes, std::nullopt);
  const config::Experiment experiment = load_experiment(arguments, world).experiment;
  if (experiment.launch.device != "cpu") return;
  if (!launch::fill_cores(ranks_here(experiment, world), experiment.launch.threads, usable_cores())) return;
  ::setenv("OMP_WAIT_POLICY", "passive", 1);
}

}  // namespace ddprun::app
