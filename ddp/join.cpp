#include "ddp/join.hpp"

#include <cstdlib>
#include <thread>

#include "comm/fingerprint.hpp"
#include "comm/shared_table.hpp"
#include "launch/failure.hpp"
#include "launch/rendezvous.hpp"
#include "launch/signals.hpp"
#include "train/reduce/staged_backend.hpp"

namespace ddprun::ddp {

Rendezvous join_rendezvous(launch::World& world, std::chrono::milliseconds timeout, bool ends_process) {
  Rendezvous rendezvous{launch::open_any_store(world, timeout), nullptr};
  if (rendezvous.store == nullptr || world.is_own()) return rendezvous;
  const auto exit = [ends_process](ExitCode code, const std::string& cause) {
    if (!ends_process) return;  // the next collective throws
    // It ends this rank even if nobody reads stderr.
    std::thread([code] {
      std::this_thread::sleep_for(std::chrono::seconds(1));
      std::_Exit(static_cast<int>(code));
    }).detach();
    // This rank hangs, so its last collectives show most: CollectivesFile writes them on this signal.
    launch::send_held_usr2(launch::kJobFails);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    std::_Exit(static_cast<int>(launch::report_failure(code, cause)));
  };
  rendezvous.link = std::make_unique<launch::RankWatch>(world.server, world, timeout, exit);
  return rendezvous;
}

Error first_cause(const Rendezvous& rendezvous, const Error& error) {
  if (rendezvous.link == nullptr) return error;
  return rendezvous.link->failed(error).value_or(error);
}

Joined join_backend(const ddprun_comm_plugin& plugin, const JoinSettings& settings, const launch::World& world,
                    const Rendezvous& rendezvous) {
  comm::JoinOptions options = settings.plugin;
  options.rank = world.rank;
  options.size = world.size;
  options.address = world.address;
  if (rendezvous.link != nullptr) options.abort_flag = rendezvous.link->abort_flag();
  const bool on_gpu = !settings.device.is_cpu();
  if (on_gpu && comm::memory_given(plugin, Memory::cuda, settings.stage_through_host) == Memory::cuda) {
    options.device = settings.device.index();
  }
  options.allgather = rendezvous.store->numbered_allgather("join", world.rank, world.size, options.deadline);
  auto adapter = comm::join(plugin, options);
  comm::PluginBackend& backend = *adapter;
  Joined joined{std::move(adapter), backend.recorder()};
  if (on_gpu) joined.backend = train::staged(std::move(joined.backend), settings.device, options.deadline);
  if (!settings.compare_calls) return joined;
  // Ranks of one host compare their calls in shared memory; across hosts, they use the backend itself.
  backend.compare_calls(
      world.on_one_host()
          ? comm::shared_table(comm::map_table(world.job_dir + "/table" + settings.part, world.size), world.rank)
          : comm::exchange_over(*joined.backend));
  return joined;
}

}  // namespace ddprun::ddp
