// A rank that is killed while the ranks connect over TCP: the others end with an error that names it.
#include <doctest/doctest.h>

#include <chrono>
#include <csignal>
#include <map>
#include <string>
#include <thread>

#include "plugins/comm_ucx/choice.hpp"
#include "plugins/comm_ucx/communicator.hpp"
#include "plugins/rank_host.hpp"
#include "support/text.hpp"
#include "testing/ranks.hpp"

using namespace ddprun::testing;
using ddprun::CommError;
using ddprun::CommStatus;
using ddprun::ucx_backend::kOptions;
using ddprun::ucx_backend::UcxCommunicator;
using std::chrono::microseconds;
using std::chrono::seconds;

namespace {

constexpr int kRanks = 3, kKilled = 2, kRounds = 40;

RankHost host_of(Rank& rank) {
  return {rank, "ring", 20'000, -1, {{"tls", "tcp,self"}}};
}

// The rank's calls of the host's allgather as it joins; after the last one, the ranks connect.
int gathers_of_a_join() {
  const auto outcomes = run_ranks(kRanks, As::processes, seconds(60), [](Rank& rank) {
    RankHost host = host_of(rank);
    int last = 0;
    host.after_gather = [&](int number) { last = number; };
    const UcxCommunicator joined(host.host(kOptions));
    rank.report(std::to_string(last));
    rank.meet();
  });
  REQUIRE(failures(outcomes) == "");
  return std::stoi(outcomes[0].records.at(0));
}

}  // namespace

TEST_CASE("if a rank is killed while the ranks connect over TCP, the others name it") {
  const int last = gathers_of_a_join();
  for (int round = 0; round < kRounds; ++round) {
    CAPTURE(round);
    const auto outcomes = run_ranks(kRanks, As::processes, seconds(60), [&](Rank& rank) {
      RankHost host = host_of(rank);
      host.after_gather = [&](int number) {
        if (number != last || rank.rank() != kKilled) return;
        std::thread([after = microseconds(150 * round)] {
          std::this_thread::sleep_for(after);
          raise(SIGKILL);
        }).detach();
      };
      try {
        UcxCommunicator joined(host.host(kOptions));
        while (true) joined.barrier().wait(seconds(20));
      } catch (const CommError& failure) {
        rank.report(name_of(failure.status()) + " " + failure.what());
      }
    });
    for (const auto& outcome : outcomes) {
      if (outcome.rank == kKilled) continue;
      CHECK(outcome.describe() == "rank " + std::to_string(outcome.rank) + ": finished");
      REQUIRE(outcome.records.size() == 1);
      CHECK_MESSAGE(outcome.records[0].starts_with(name_of(CommStatus::peer_lost)), outcome.records[0]);
      CHECK_MESSAGE(contains(outcome.records[0], "rank 2"), outcome.records[0]);
    }
  }
}
