#include "cli/run/connections.hpp"

#include "base/text.hpp"
#include "cli/run/observers.hpp"
#include "comm/plugin_backend.hpp"
#include "ddp/group_state.hpp"
#include "ddp/share.hpp"
#include "launch/rendezvous.hpp"

namespace ddprun::run {
namespace {

// What must be equal on all ranks, one `name = value` per line.
std::string identity(const Assembly& assembly) {
  std::string text = std::string("ddprun = ") + version() + "\ntorch = " + train::torch_version() + "\n";
  text += std::string("model plugin = ") + assembly.model_plugin.table->version + "\n";
  text += std::string("data set = ") + assembly.dataset_plugin.table->version + "\n";
  if (assembly.comm) {
    const auto& comm = *assembly.comm->table;
    text += std::string("comm plugin = ") + comm.name + " " + comm.version + ", " + comm.library + "\n";
  }
  return text + config::shared_toml(assembly.experiment());
}

const launch::IdentityWords kExperiment{.differ = "do not run the same experiment",
                                        .advice = "start all ranks with the same config and program"};

}  // namespace

void require_same_experiment(const Assembly& assembly, Store& job) {
  launch::require_identity(job, identity(assembly), config::milliseconds(assembly.experiment().launch.timeout),
                           kExperiment);
}

void run_linked(const Rendezvous& rendezvous, const std::function<void()>& body) {
  if (rendezvous.link == nullptr) return body();
  try {
    body();
    rendezvous.link->finish();
  } catch (...) {
    throw ddp::first_cause(rendezvous, ddp::current_error());
  }
}

Connections connect(const Assembly& assembly, const launch::World& world, const Rendezvous& rendezvous, int changes) {
  Connections connections;
  connections.store = rendezvous.store.get();
  connections.link = rendezvous.link.get();
  const config::Experiment& experiment = assembly.experiment();
  if (world.is_own()) connections.table = std::make_unique<launch::ProgressTable>(world.job_dir, world.local_size);
  if (world.size > 1) {
    connections.progress()->set(world.local_rank, {0, Phase::rendezvous, -1});
    launch::compare_identities(*connections.store, world.rank, world.size, identity(assembly),
                               config::milliseconds(experiment.launch.timeout), kExperiment);
    const comm::JoinOptions how{.deadline = config::milliseconds(experiment.comm.timeout),
                                .algorithm = experiment.comm.algorithm,
                                .deterministic = experiment.train.deterministic,
                                .options = experiment.comm.options};
    ddp::Joined joined = ddp::join_backend(*assembly.comm->table,
                                           {.plugin = how,
                                            .device = assembly.device(),
                                            .stage_through_host = experiment.comm.stage_through_host,
                                            .compare_calls = experiment.comm.check != "off",
                                            .part = changes > 0 ? "-" + std::to_string(changes) : ""},
                                           world, rendezvous);
    connections.backend = with_fault(std::move(joined.backend), experiment.faults, joined.recorder);
    connections.recorder = std::move(joined.recorder);
  } else if (experiment.strategy.kind == "ddp") {
    connections.backend = comm::single_process_backend();
  }
  if (connections.backend != nullptr) {
    connections.ranks = {*connections.backend, config::milliseconds(experiment.comm.timeout)};
    const auto state = std::make_shared<Group::State>();
    state->ranks = connections.ranks;
    state->device = assembly.device();
    connections.tensors = Group(state);
  }
  return connections;
}

}  // namespace ddprun::run
