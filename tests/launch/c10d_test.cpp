#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "launch/free_port.hpp"
#include "support/process.hpp"
#include "support/text.hpp"

namespace {

using namespace ddprun::testing;
using namespace ddprun::launch::testing;

std::vector<std::string> place(int rank, int size, int port) {
  const std::string number = std::to_string(rank), ranks = std::to_string(size);
  return {"RANK=" + number,        "WORLD_SIZE=" + ranks,
          "LOCAL_RANK=" + number,  "LOCAL_WORLD_SIZE=" + ranks,
          "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + std::to_string(port)};
}

// Another process may take a free port before rank 0 does.
bool is_taken(const std::vector<ProcessResult>& results) {
  return contains(results[0].err, "the port is in use");
}

// The output of three ranks that meet at this port, rank 0 first.
std::vector<ProcessResult> meet_at(int port) {
  std::vector<std::unique_ptr<Process>> ranks(3);
  for (const std::size_t rank : {2, 1, 0}) {
    ranks[rank] =
        std::make_unique<Process>(std::vector<std::string>{C10D_RANK, "meet"}, place(static_cast<int>(rank), 3, port));
  }
  std::vector<ProcessResult> results;
  for (auto& rank : ranks) {
    results.push_back(rank->wait(std::chrono::seconds(120)));
    if (is_taken(results)) break;  // the port was taken; the other ranks end with `ranks`
  }
  return results;
}

TEST_CASE("without an agent rank 0 hosts the store, and the ranks meet") {
  std::vector<ProcessResult> results;
  for (int tries = 0; tries == 0 || (tries < 3 && is_taken(results)); ++tries) {
    const FreePort held(true);
    const int port = held.number;
    results = meet_at(port);
  }
  for (const auto& result : results) {
    CHECK_MESSAGE(result.code == 0, result.err);
    CHECK(contains(result.err, "nobody's"));
  }
}

TEST_CASE("ranks with different world sizes are refused with both sizes") {
  const FreePort port(true);
  const Process first({C10D_RANK, "meet"}, place(0, 2, port.number));
  const auto result = Process({C10D_RANK, "meet"}, place(1, 3, port.number)).wait(std::chrono::seconds(60));
  CHECK(result.code == 4);
  CHECK_MESSAGE(contains(result.err, "rank 0 has a job of 2 ranks, and rank 1 one of 3"), result.err);
}

// Ranks of torchrun on two hosts, which count their restarts by themselves. Rank 0 starts last: the others find the key
// of the attempt before.
TEST_CASE("restarted ranks of torchrun meet, although the agents of two hosts have counted different restarts") {
  const FreePort port(true);
  const auto with = [&](int rank, const std::vector<std::string>& more) {
    auto variables = place(rank, 2, port.number);
    variables[2] = "LOCAL_RANK=0";
    variables[3] = "LOCAL_WORLD_SIZE=1";
    variables.insert(variables.end(), more.begin(), more.end());
    return variables;
  };
  Process agent({C10D_RANK, "agent"}, with(0, {}));
  REQUIRE(eventually([&] { return contains(agent.out(), "serving"); }));
  for (const auto& counts : std::vector<std::vector<std::string>>{{"0", "0"}, {"1", "0"}, {"1", "2"}}) {
    CAPTURE(counts[0] + " " + counts[1]);
    std::vector<std::unique_ptr<Process>> ranks(2);
    for (const int rank : {1, 0}) {
      const auto at = static_cast<std::size_t>(rank);
      ranks[at] = std::make_unique<Process>(std::vector<std::string>{C10D_RANK, "meet"},
                                            with(rank, {"TORCHELASTIC_RUN_ID=job", "TORCHELASTIC_USE_AGENT_STORE=True",
                                                        "TORCHELASTIC_RESTART_COUNT=" + counts[at]}));
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
    }
    for (const auto& rank : ranks) {
      const auto result = rank->wait(std::chrono::seconds(60));
      CHECK_MESSAGE(result.code == 0, result.err);
    }
  }
}

TEST_CASE("a store that cannot be reached is reported with its address and exit code 4") {
  const FreePort port;
  Process rank({C10D_RANK, "unreachable"}, place(1, 2, port.number));
  const auto result = rank.wait(std::chrono::seconds(120));
  CHECK(result.code == 4);
  CHECK(contains(result.err, "cannot reach"));
  CHECK(contains(result.err, "127.0.0.1:" + std::to_string(port.number)));
  MESSAGE("gave up after ", result.elapsed.count(), " ms; its limit was 1000");
}

}  // namespace
