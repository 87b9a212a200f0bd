#include "app/run/group.hpp"

#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "app/run/torch_facts.hpp"
#include "base/log.hpp"
#include "base/version.hpp"
#include "comm/backend_exchange.hpp"
#include "comm/over_store.hpp"
#include "comm/shared_table.hpp"
#include "comm/single_process_backend.hpp"
#include "console/program.hpp"
#include "ddprun/error.hpp"
#include "launch/identity.hpp"
#include "launch/signal_thread.hpp"
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

void join_backend(const Assembly& assembly, const launch::World& world, Group& group) {
  const auto& settings = assembly.experiment().comm;
  comm::JoinOptions options;
  options.rank = world.rank;
  options.size = world.size;
  options.deadline = milliseconds(settings.timeout);
  options.algorithm = settings.algorithm;
  options.deterministic = settings.deterministic;
  options.options = settings.options;
  options.address = world.address;
  if (group.link != nullptr) options.abort_flag = group.link->abort_flag();
  const torch::Device device = assembly.device();
  const bool on_gpu = !device.is_cpu() && comm::memory_given(*assembly.comm->table, Memory::cuda,
                                                             settings.stage_through_host) == Memory::cuda;
  if (on_gpu) options.device = device.index();
  auto adapter = comm::join_over(*group.store, *assembly.comm->table, options);
  comm::PluginBackend& plugin = *adapter;
  group.recorder = plugin.recorder();
  group.backend = std::move(adapter);
  if (!device.is_cpu()) group.backend = train::staged(std::move(group.backend), device, options.deadline);
  if (settings.check == "off") return;
  if (!world.on_one_host() && assembly.experiment().train.cuda_graph) {
    throw Error(ExitCode::usage,
                config::error(assembly.loaded.sources, "comm.check",
                              "uses the backend to compare calls if the ranks are on several hosts or another launcher "
                              "has started them, and a CUDA graph cannot record that; set it to \"off\", or "
                              "train.cuda_graph = false"));
  }
  // Ranks of one host compare their calls in shared memory; across hosts, they use the backend itself.
  auto exchange = world.on_one_host()
                      ? comm::shared_table(comm::map_table(world.job_dir + "/table", world.size), world.rank)
                      : comm::exchange_over(*group.backend);
  plugin.compare_calls(std::move(exchange));
}

}  // namespace

std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::milliseconds(std::llround(seconds * 1000));
}

Meeting meet(launch::World& world, std::chrono::milliseconds timeout) {
  Meeting meeting{launch::open_any_store(world, timeout), nullptr};
  if (meeting.store == nullptr || world.is_own()) return meeting;
  const auto exit = [](ExitCode code, const std::string& cause) {
    // It ends this rank even if nobody reads stderr.
    std::thread([code] {
      std::this_thread::sleep_for(std::chrono::seconds(1));
      std::_Exit(static_cast<int>(code));
    }).detach();
    // This rank hangs, so its last collectives show most: CollectivesFile writes them on this signal.
    ::sigqueue(::getpid(), SIGUSR2, {.sival_int = launch::kJobFails});
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    std::_Exit(static_cast<int>(console::report_failure(code, cause)));
  };
  meeting.link = std::make_unique<launch::RankLink>(*meeting.store->server(), world, timeout, exit);
  return meeting;
}

void run_linked(const Meeting& meeting, const std::function<void()>& body) {
  if (meeting.link == nullptr) return body();
  try {
    body();
    meeting.link->finish();
  } catch (const std::exception& exception) {
    const auto* known = dynamic_cast<const Error*>(&exception);
    const Error error = known != nullptr ? *known : Error(ExitCode::failure, error_message(exception));
    throw Error(meeting.link->failed(error).value_or(error));
  }
}

Group join_group(const Assembly& assembly, const launch::World& world, const Meeting& meeting) {
  Group group{meeting.store.get(), meeting.link.get(), nullptr, nullptr};
  const bool ddp = assembly.experiment().strategy.kind == "ddp";
  if (world.size == 1) {
    if (ddp) group.backend = comm::single_process_backend();
    return group;
  }
  const auto timeout = milliseconds(assembly.experiment().launch.timeout);
  if (world.is_own()) {
    group.table = launch::ProgressTable::open(world.job_dir, world.local_size);
  }
  group.progress()->set(world.local_rank, {0, Phase::rendezvous, -1});
  compare_identities(assembly, *group.store, world, timeout);
  join_backend(assembly, world, group);
  return group;
}

std::string broadcast_text(Group& group, const launch::World& world, const std::string& key, const std::string& text,
                           std::chrono::milliseconds timeout) {
  if (group.store == nullptr) return text;
  if (world.rank == 0) group.store->set(key, text);
  return group.store->get(key, timeout);
}

}  // namespace ddprun::run
