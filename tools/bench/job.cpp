#include "tools/bench/job.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ddprun/error.hpp"
#include "ddprun/plugin/host_identity.hpp"
#include "launch/net/address.hpp"

namespace ddprun::bench {

std::vector<HostRanks> compare_plans(const Plan& plan, Store& store, const launch::World& world) {
  using nlohmann::json;
  std::string host = host_identity();
  if (host.empty()) host = "rank " + std::to_string(world.rank);
  const json own = {{"host", host}, {"name", launch::host_name()}, {"plan", words_of(plan)}};
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
