#include "tools/bench/bench.hpp"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/file.hpp"
#include "base/log.hpp"
#include "comm/plugin_backend.hpp"
#include "ddprun/error.hpp"
#include "ddprun/plugin/host_identity.hpp"
#include "launch/net/address.hpp"
#include "launch/rendezvous.hpp"
#include "tools/bench/plan.hpp"

namespace ddprun::bench {

using nlohmann::json;

std::vector<comm::BenchmarkResult> measure(const Plan& plan, const Variant& variant, int64_t round, Store& store,
                                           const launch::World& world) {
  comm::JoinOptions join;
  join.rank = world.rank;
  join.size = world.size;
  join.device = device_of(plan, world.local_rank);
  join.address = world.address;
  join.deadline = plan.benchmark.timeout;
  join.algorithm = variant.algorithm;
  join.options = variant.options;
  join.allgather = store.numbered_allgather("join", world.rank, world.size, join.deadline);
  const auto backend = comm::join(*variant.plugin.table, join);

  comm::BenchmarkOptions options = plan.benchmark;
  options.device = join.device;
  options.one_clock = world.local_size == world.size;
  options.seed = static_cast<uint64_t>(round);
  const auto gather = store.numbered_allgather("bench", world.rank, world.size, plan.benchmark.timeout);
  comm::Benchmark benchmark(*backend, gather, options, plan.sizes.back());
  std::vector<comm::BenchmarkResult> results;
  for (const comm::BenchmarkCase& what : cases_of(plan, variant)) results.push_back(benchmark.measure(what));
  return results;
}

void note_only_once(int64_t round) {
  log::set_level(round > 0 ? log::Level::warning : log::Level::info);
}

void run_rank(const Plan& plan, const Task& task, const launch::World& world) {
  const auto& [round, variant, path] = task;
  note_only_once(round);
  const auto store = launch::folder_store(world.job_dir);  // a world of one needs a store too
  const auto results = measure(plan, plan.variants[variant], round, *store, world);
  if (world.rank != 0) return;
  json list = json::array();
  for (const comm::BenchmarkResult& result : results) {
    list.push_back({{"seconds", result.seconds},
                    {"batch", result.batch},
                    {"wrong", result.wrong},
                    {"algorithm", result.execution.algorithm},
                    {"transport", result.execution.transport}});
  }
  replace_file(path, list.dump());
}

std::vector<comm::BenchmarkResult> read_results(const std::string& path) try {
  std::ifstream file(path);
  std::vector<comm::BenchmarkResult> results;
  for (const json& entry : json::parse(file)) {
    results.push_back(
        {entry.at("seconds"), entry.at("batch"), entry.at("wrong"), {entry.at("algorithm"), entry.at("transport")}});
  }
  return results;
} catch (const json::exception& error) {
  throw Error(ExitCode::failure, "cannot read the results of the ranks in " + path + ": " + error.what());
}

std::vector<HostRanks> compare_plans(const Plan& plan, Store& store, const launch::World& world) {
  std::string host = host_identity();
  if (host.empty()) host = "rank " + std::to_string(world.rank);
  const json own = {{"host", host}, {"name", launch::host_name()}, {"plan", to_text(plan)}};
  const auto texts = store.allgather("plan", world.rank, world.size, own.dump(), plan.benchmark.timeout);
  const std::string first = json::parse(texts[0]).at("plan");
  std::vector<HostRanks> hosts;
  std::vector<std::string> identities;
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    const json one = json::parse(texts[rank]);
    if (one.at("plan") != first) {
      throw Error(ExitCode::rendezvous, "bench: rank " + std::to_string(rank) + " on " +
                                            one.at("name").get<std::string>() + " would measure \"" +
                                            one.at("plan").get<std::string>() + "\", and rank 0 \"" + first +
                                            "\": give the same arguments and the same version on all hosts");
    }
    const auto found = std::find(identities.begin(), identities.end(), one.at("host"));
    const auto place = static_cast<std::size_t>(found - identities.begin());
    if (found == identities.end()) {
      identities.push_back(one.at("host"));
      hosts.push_back({one.at("name"), {}});
    }
    hosts[place].ranks.push_back(static_cast<int>(rank));
  }
  return hosts;
}

}  // namespace ddprun::bench
