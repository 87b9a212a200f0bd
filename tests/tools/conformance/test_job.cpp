// `ddprun-conformance` as several processes, which divide the ranks.
#include <doctest/doctest.h>

#include <functional>
#include <memory>

#include "launch/free_port.hpp"
#include "support/process.hpp"
#include "support/text.hpp"

namespace ddprun::testing {
namespace {

using Words = std::vector<std::string>;

struct Started {
  Words arguments;
  Words variables;
};

std::vector<ProcessResult> start_two(const std::string& plugin, const std::function<Started(int, std::string)>& what) {
  const launch::testing::FreePort held(true);
  const std::string port = std::to_string(held.number);
  std::vector<std::unique_ptr<Process>> processes;
  for (int i = 0; i < 2; ++i) {
    const Started one = what(i, port);
    Words command = {DDPRUN_CONFORMANCE, "--plugin", plugin,    "--filter", "allreduce auto float32",
                     "--filter",         "dies",     "--slack", "15000"};
    command.insert(command.end(), one.arguments.begin(), one.arguments.end());
    processes.push_back(std::make_unique<Process>(command, one.variables));
  }
  std::vector<ProcessResult> results;
  for (auto& process : processes) results.push_back(process->wait(std::chrono::seconds(60)));
  return results;
}

Started as_node(int node, const std::string& port) {
  const Words options = {"--nnodes",      "2",  "--node-rank",      std::to_string(node),    "--master-addr=127.0.0.1",
                         "--master-port", port, "--nproc-per-node", std::to_string(2 - node)};
  return {options, {}};
}

Started as_rank(int rank, const std::string& port) {
  return {{}, {"RANK=" + std::to_string(rank), "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + port}};
}

TEST_CASE("two nodes with two ranks and one: process 0 prints, and both have the same exit code") {
  const auto good = start_two(DDPRUN_GOOD_FAKE, as_node);
  for (const auto& result : good) REQUIRE_MESSAGE(result.code == 0, (result.err + result.out));
  CHECK_MESSAGE(contains(good[0].out, "world 3 on 2 nodes  allreduce auto"), good[0].out);
  CHECK(contains(good[0].out, " passed, 0 failed, "));
  CHECK(contains(good[0].out, "skipped: ranks as threads: "));
  CHECK(good[1].out + good[1].err == "");
  const auto wrong = start_two(DDPRUN_WRONG_FAKE, as_node);
  for (const auto& result : wrong) CHECK(result.code == 6);
  CHECK_MESSAGE(contains(wrong[0].out, "FAILED  world 3 on 2 nodes: "), wrong[0].out);
  CHECK_MESSAGE(contains(wrong[0].out, "rank 2: "), wrong[0].out);
}

TEST_CASE("ranks of another launcher") {
  const auto good = start_two(DDPRUN_GOOD_FAKE, as_rank);
  for (const auto& result : good) REQUIRE_MESSAGE(result.code == 0, (result.err + result.out));
  CHECK_MESSAGE(contains(good[0].out, "world 2 on ranks of env://"), good[0].out);
  CHECK(good[1].out + good[1].err == "");
}

TEST_CASE("a process that is killed ends the other one, which names it") {
  for (const int victim : {0, 1}) {
    CAPTURE(victim);
    const launch::testing::FreePort held(true);
    const std::string port = std::to_string(held.number);
    std::vector<std::unique_ptr<Process>> processes;
    for (int node = 0; node < 2; ++node) {
      const Words options = as_node(node, port).arguments;
      Words command = {DDPRUN_CONFORMANCE, "--plugin", DDPRUN_GOOD_FAKE};  // all cases: more than ten seconds
      command.insert(command.end(), options.begin(), options.end());
      processes.push_back(std::make_unique<Process>(command, Words{}));
    }
    REQUIRE(eventually([&] { return contains(processes[0]->out(), "good"); }));
    processes[static_cast<std::size_t>(victim)]->send(SIGKILL);
    const auto result = processes[static_cast<std::size_t>(1 - victim)]->wait(std::chrono::seconds(30));
    CHECK(result.code == 5);
    CHECK_MESSAGE(contains(result.err, "rank " + std::to_string(victim) + " ("), result.err);
  }
}

TEST_CASE("processes with different arguments are refused") {
  const auto results = start_two(DDPRUN_GOOD_FAKE, [](int node, const std::string& port) {
    Started one = as_node(node, port);
    if (node == 1) one.arguments.push_back("--large");
    return one;
  });
  for (const auto& result : results) {
    CHECK(result.code == 4);
    CHECK_MESSAGE(contains(result.err, "node 0 and node 1 do not test the same: \"--large = 0\" and \"--large = 1\""),
                  result.err);
  }
}

}  // namespace
}  // namespace ddprun::testing
