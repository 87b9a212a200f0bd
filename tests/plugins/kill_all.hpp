// What a backend leaves on the machine when all ranks are killed at once, as they join and as they reduce.
#pragma once

#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include "plugins/rank_host.hpp"
#include "tools/conformance/leftovers.hpp"
#include "tools/conformance/ranks.hpp"

namespace ddprun::testing {

// Joins, allocates and reduces until the kill, which comes so long after the ranks have met.
template <class Backend>
void run_until_killed(Rank& rank, const std::string& algorithm, std::chrono::microseconds after) {
  RankHost host(rank, algorithm, 20'000);
  rank.meet();
  std::thread([after] {
    std::this_thread::sleep_for(after);
    raise(SIGKILL);
  }).detach();
  try {
    Backend backend(host.host());
    while (true) {
      constexpr std::size_t kCount = 1'000'000;
      auto* const data = static_cast<float*>(backend.alloc(kCount * sizeof(float)));
      backend.allreduce(allreduce_of(comm::DType::float32, comm::Op::max, data, data, kCount));
      backend.free(data);
    }
  } catch (const std::exception&) {
    std::this_thread::sleep_for(std::chrono::seconds(50));  // a peer was killed first
  }
}

// Two ranks, killed `rounds` times, each time by `step` later than before. What they have left; also where a rank has
// ended in another way.
template <class Backend>
std::vector<std::string> left_by_killed_ranks(const std::string& algorithm, int rounds,
                                              std::chrono::microseconds step) {
  conformance::Leftovers leftovers;
  std::vector<std::string> left;
  for (int round = 0; round < rounds; ++round) {
    const auto outcomes = run_ranks(2, As::processes, std::chrono::seconds(60),
                                    [&](Rank& rank) { run_until_killed<Backend>(rank, algorithm, round * step); });
    std::vector<pid_t> ranks;
    for (const auto& outcome : outcomes) {
      if (outcome.number != SIGKILL) left.push_back("round " + std::to_string(round) + ": " + outcome.describe());
      ranks.push_back(outcome.pid);
    }
    for (const auto& name : leftovers.found(ranks)) left.push_back("round " + std::to_string(round) + ": " + name);
  }
  return left;
}

}  // namespace ddprun::testing
