// What is left on the machine when every rank is killed at once: as they join, and as they reduce.
#include <doctest/doctest.h>

#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "plugins/comm_ucx/communicator.hpp"
#include "plugins/comm_ucx/rank_host.hpp"
#include "tools/conformance/leftovers.hpp"

using ddprun::Collective;
using ddprun::DType;
using ddprun::Op;

using namespace ddprun::testing;
using ddprun::ucx_backend::UcxCommunicator;
using std::chrono::microseconds;
using std::chrono::seconds;

namespace {

// Joins, allocates and reduces until the kill, which comes so long after the ranks have met.
void run_until_killed(Rank& rank, microseconds after) {
  unsetenv("UCX_TLS");  // as users have it: UCX marks segments of its own for removal a moment late (docs/ucx.md)
  RankHost host(rank, "auto", 20'000);
  rank.meet();
  std::thread([after] {
    std::this_thread::sleep_for(after);
    raise(SIGKILL);
  }).detach();
  try {
    UcxCommunicator communicator(host.host());
    while (true) {
      constexpr std::size_t kCount = 1'000'000;
      const auto memory = communicator.allocate(kCount * sizeof(float));
      auto* const data = static_cast<float*>(memory.get());
      Collective call = {};
      call.dtype = DType::float32;
      call.op = Op::max;
      call.send = call.recv = data;
      call.count = kCount;
      communicator.allreduce(call);
    }
  } catch (const std::exception&) {
    std::this_thread::sleep_for(seconds(50));  // a peer was killed first
  }
}

}  // namespace

TEST_CASE("nothing is left when all ranks are killed at once, whenever that is") {
  ddprun::conformance::Leftovers leftovers;
  for (int round = 0; round < 80; ++round) {
    CAPTURE(round);
    const microseconds after(500 * round);
    const auto outcomes = run_ranks(2, As::processes, seconds(60), [&](Rank& rank) { run_until_killed(rank, after); });
    std::vector<pid_t> ranks;
    for (const auto& outcome : outcomes) {
      CHECK(outcome.number == SIGKILL);
      ranks.push_back(outcome.pid);
    }
    CHECK(leftovers.found(ranks) == std::vector<std::string>());
  }
}
