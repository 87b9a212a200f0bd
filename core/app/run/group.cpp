#include "app/run/group.hpp"

#include <cmath>

#include "base/log.hpp"
#include "base/version.hpp"
#include "comm/backend_exchange.hpp"
#include "comm/over_store.hpp"
#include "comm/shared_table.hpp"
#include "comm/single_process_backend.hpp"
#include "ddprun/error.hpp"
#include "launch/identity.hpp"
#include "launch/tcp_store.hpp"
#include "train/reduce/staged_backend.hpp"

namespace ddprun::run {
namespace {

// What must be equal on all ranks, one `name = value` per line.
std::string identity(const Assembly& assembly) {
  std::string text = std::string("ddprun = ") + version() + "\ntorch = " + train::torch_version() + "\n";
  text += std::string("model plugin = ") + assembly.model_plugin.table->version + "\n";
  text += std::string("data set = ") + assembly.dataset_plugin.table->version + "\n";
  if (assembly.comm) {
    text += std::string("comm plugin = ") + assembly.comm->table->version + ", " + assembly.comm->table->library + "\n";
  }
  return text + config::shared_toml(assembly.experiment());
}

void compare_identities(const Assembly& assembly, launch::Store& store, const launch::World& world,
                        std::chrono::milliseconds timeout) {
  launch::compare_identities(
      store, world.rank, world.size, identity(assembly), timeout,
      {.differ = "do not run the same experiment", .advice = "start all ranks with the same config and program"});
}

std::unique_ptr<CommBackend> join_backend(const Assembly& assembly, launch::Store& store, const launch::World& world) {
  const auto& settings = assembly.experiment().comm;
  comm::JoinOptions options;
  options.rank = world.rank;
  options.size = world.size;
  options.deadline = milliseconds(settings.timeout);
  options.algorithm = settings.algorithm;
  options.deterministic = settings.deterministic;
  options.options = settings.options;
  options.address = world.address;
  const torch::Device device = assembly.device();
  const bool on_gpu = !device.is_cpu() && comm::memory_given(*assembly.comm->table, Memory::cuda,
                                                             settings.stage_through_host) == Memory::cuda;
  if (on_gpu) options.device = device.index();
  auto adapter = comm::join_over(store, *assembly.comm->table, options);
  comm::PluginBackend& plugin = *adapter;
  std::unique_ptr<CommBackend> backend = std::move(adapter);
  if (!device.is_cpu()) backend = train::staged(std::move(backend), device, options.deadline);
  if (settings.check == "off") return backend;
  if (!world.on_one_host() && assembly.experiment().train.cuda_graph) {
    throw Error(ExitCode::usage,
                config::error(assembly.loaded.sources, "comm.check",
                              "compares calls over the backend itself where ranks are on several hosts or another "
                              "launcher has started them, which "
                              "a CUDA graph cannot record; set it to \"off\", or train.cuda_graph = false"));
  }
  // Ranks of one host compare their calls in shared memory; across hosts, they use the backend itself.
  auto exchange = world.on_one_host()
                      ? comm::shared_table(comm::map_table(world.job_dir + "/table", world.size), world.rank)
                      : comm::exchange_over(*backend);
  plugin.compare_calls(std::move(exchange));
  return backend;
}

}  // namespace

std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::milliseconds(std::llround(seconds * 1000));
}

std::unique_ptr<launch::Store> open_store(launch::World& world, std::chrono::milliseconds timeout) {
  return launch::open_any_store(world, timeout);
}

Group join_group(const Assembly& assembly, const launch::World& world, std::unique_ptr<launch::Store> store) {
  Group group;
  group.store = std::move(store);
  const bool ddp = assembly.experiment().strategy.kind == "ddp";
  if (world.size == 1) {
    if (ddp) group.backend = comm::single_process_backend();
    return group;
  }
  const auto timeout = milliseconds(assembly.experiment().launch.timeout);
  if (world.is_own()) {
    group.progress = launch::ProgressTable::open(world.job_dir, world.local_size);
    group.progress->set(world.local_rank, {0, Phase::rendezvous, -1});
  }
  compare_identities(assembly, *group.store, world, timeout);
  group.backend = join_backend(assembly, *group.store, world);
  return group;
}

std::string broadcast_text(Group& group, const launch::World& world, const std::string& key, const std::string& text,
                           std::chrono::milliseconds timeout) {
  if (group.store == nullptr) return text;
  if (world.rank == 0) group.store->set(key, text);
  return group.store->get(key, timeout);
}

}  // namespace ddprun::run
