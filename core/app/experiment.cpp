#include "app/experiment.hpp"

#include <cstdlib>
#include <filesystem>

#include "launch/cores.hpp"

namespace ddprun::app {
namespace {

// The command line's options as keys of the config.
std::vector<std::string> overrides_of(const Arguments& arguments) {
  std::vector<std::string> overrides = arguments.overrides;
  const auto add = [&](const char* key, std::optional<int> value) {
    if (value) overrides.push_back(std::string(key) + "=" + std::to_string(*value));
  };
  add("launch.nproc", arguments.nodes.nproc);
  add("launch.max_restarts", arguments.nodes.max_restarts);
  if (arguments.tensorboard) overrides.emplace_back("log.tensorboard=true");
  return overrides;
}

std::optional<int64_t> ranks_elsewhere(const console::NodeOptions& options, const std::optional<launch::World>& world) {
  if (world) return world->on_one_host() ? std::nullopt : std::optional<int64_t>(world->size);
  return options.nnodes.value_or(1) > 1 ? std::optional<int64_t>(0) : std::nullopt;
}

// The ranks of this host.
int64_t ranks_here(const config::Experiment& experiment, const std::optional<launch::World>& world) {
  if (world) return std::max(1, world->local_size);
  if (experiment.strategy.kind != "ddp") return 1;
  return experiment.launch.nproc > 0 ? experiment.launch.nproc : launch::own_cores();
}

}  // namespace

std::optional<launch::World> find_world(const Arguments& arguments) {
  console::use_local_rank(arguments.nodes);
  return console::discover(arguments.nodes, std::nullopt);
}

config::Loaded load_experiment(const Arguments& arguments, const std::optional<launch::World>& world) {
  return config::load(arguments.config, overrides_of(arguments), ranks_elsewhere(arguments.nodes, world));
}

void choose_wait_policy(const Arguments& arguments) {
  if (std::getenv("OMP_WAIT_POLICY") != nullptr || std::getenv("GOMP_SPINCOUNT") != nullptr) return;
  if (!std::filesystem::is_regular_file(arguments.config)) return;
  const auto world = find_world(arguments);
  const config::Experiment experiment = load_experiment(arguments, world).experiment;
  if (experiment.launch.device != "cpu") return;
  if (!launch::fill_cores(ranks_here(experiment, world), experiment.launch.threads, launch::own_cores())) return;
  ::setenv("OMP_WAIT_POLICY", "passive", 1);
}

}  // namespace ddprun::app
