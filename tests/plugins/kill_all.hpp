// What a backend leaves on the machine if all ranks are killed at once, while they join or reduce.
#pragma once

#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include "plugins/rank_host.hpp"
#include "testing/leftovers.hpp"
#include "testing/ranks.hpp"

namespace ddprun::testing {

// The event after which the time to the kill starts.
enum class Killed { joining, joined };

struct Kills {
  std::string algorithm;
  Killed from;
  int rounds;                      // each with new ranks,
  std::chrono::microseconds step;  // which live this much longer than in the round before
  OptionSpecs options = kNoOptions;
};

// Joins, allocates, and reduces until the kill.
template <class Backend>
void run_until_killed(Rank& rank, const Kills& kills, std::chrono::microseconds after) {
  const auto start_timer = [&] {
    rank.meet();
    std::thread([after] {
      std::this_thread::sleep_for(after);
      raise(SIGKILL);
    }).detach();
  };
  RankHost host(rank, kills.algorithm, 20'000);
  if (kills.from == Killed::joining) start_timer();
  try {
    Backend backend(host.host(kills.options));
    if (kills.from == Killed::joined) start_timer();
    while (true) {
      constexpr std::size_t kCount = 1'000'000;
      const auto memory = backend.allocate(kCount * sizeof(float));
      auto* const data = static_cast<float*>(memory.get());
      backend.allreduce(allreduce_of(DType::float32, Op::max, data, data, kCount)).wait(std::chrono::seconds(20));
    }
  } catch (const std::exception&) {
    std::this_thread::sleep_for(std::chrono::seconds(50));  // a peer was killed first
  }
}

// What two ranks have left in all rounds, and each rank that ended in another way.
template <class Backend>
std::vector<std::string> left_by_killed_ranks(const Kills& kills) {
  conformance::Leftovers leftovers;
  std::vector<std::string> left;
  for (int round = 0; round < kills.rounds; ++round) {
    const auto outcomes = run_ranks(2, As::processes, std::chrono::seconds(60),
                                    [&](Rank& rank) { run_until_killed<Backend>(rank, kills, round * kills.step); });
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
