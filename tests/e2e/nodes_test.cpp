// One job of several launchers, as on several hosts. Each has a disk of its own here, and 127.0.0.1 joins them.
#include <doctest/doctest.h>

#include <csignal>

#include "e2e/nodes.hpp"
#include "e2e/over_backend.hpp"
#include "e2e/program.hpp"
#include "e2e/run_files.hpp"

using namespace ddprun::e2e;
using namespace ddprun::testing;

namespace {

constexpr std::chrono::seconds kLimit{120};

std::filesystem::path undisturbed_run(Workplace& place, const std::string& config, int ranks,
                                      const std::vector<std::string>& overrides) {
  auto all = overrides;
  all.push_back("launch.nproc=" + std::to_string(ranks));
  all.push_back("experiment.output=" + (place.folder() / "own").string());
  const auto own = place.run(place.training(config, all));
  REQUIRE_MESSAGE(own.code == 0, own.err);
  return std::filesystem::directory_iterator(place.folder() / "own")->path();
}

TEST_CASE("four virtual ranks on two nodes without a common disk are those of one rank, and node 0 has their states") {
  Workplace place;
  const std::string config = place.config(kExperiment);
  const std::vector<std::string> more{"strategy.virtual_ranks=4"};
  Nodes nodes(place, config, {2, 1}, more);
  for (const auto& result : nodes.wait()) REQUIRE_MESSAGE(result.code == 0, result.err);
  const auto run = newest_run(place, 0);
  CHECK(summary_of(run).at("weights.sha256") ==
        summary_of(undisturbed_run(place, config, 1, more)).at("weights.sha256"));
  const auto commit = commits_of(run).back();
  for (int rank = 0; rank < 4; ++rank) {
    CHECK(std::filesystem::exists(ddprun::checkpoint::state_path(commit, rank)));
  }
}

TEST_CASE("two nodes without a common disk give the results of one, and rank 0 has the records of all ranks") {
  Workplace place;
  const std::string config = place.config(kExperiment);
  Nodes nodes(place, config, {2, 1}, {"log.trace_steps=[2]"});
  for (const auto& result : nodes.wait()) REQUIRE_MESSAGE(result.code == 0, result.err);
  const auto run = newest_run(place, 0), own = undisturbed_run(place, config, 3, {});
  CHECK(losses_of(run, 3) == losses_of(own, 3));
  CHECK(weights_of(run) == weights_of(own));
  CHECK(summary_of(run).at("world") == 3);
  CHECK(std::filesystem::exists(run / "trace" / "trace.json"));
  CHECK_FALSE(std::filesystem::exists(newest_run(place, 1) / "summary.json"));
  CHECK(place.leftovers().empty());
}

TEST_CASE(
    "a rank that is killed: all nodes restart from the newest checkpoint, and end with the weights of an "
    "undisturbed run") {
  Workplace place;
  const std::string config = place.config(kExperiment);
  const std::vector<std::string> length = {"train.steps=400", "checkpoint.every_steps=20", "log.every=1"};
  auto overrides = length;
  overrides.push_back("launch.max_restarts=1");
  Nodes nodes(place, config, {1, 1}, overrides);
  nodes.jobs[0]->wait_for_steps();
  const auto checkpoints = [&] { return newest_run(place, 0) / "checkpoints"; };
  REQUIRE(eventually([&] { return std::filesystem::exists(checkpoints() / "step-00000040.safetensors"); }));
  kill(nodes.jobs[1]->ranks(1).begin()->second, SIGKILL);
  for (const auto& result : nodes.wait()) {
    REQUIRE_MESSAGE(result.code == 0, result.err);
    CHECK_MESSAGE(contains(result.err, "ddprun: restart 1 of 1"), result.err);
    CHECK_MESSAGE(contains(result.err, "ddprun: failed: rank 1 ("), result.err);
  }
  CHECK(weights_of(newest_run(place, 0)) == weights_of(undisturbed_run(place, config, 2, length)));
  CHECK(place.leftovers().empty());
}

TEST_CASE("a fault of [faults] does not come back after a restart, on any node") {
  Workplace place;
  Nodes nodes(place, place.config(kExperiment), {1, 1},
              {"faults.kind=kill", "faults.rank=1", "faults.step=3", "launch.max_restarts=1"});
  for (const auto& result : nodes.wait()) {
    REQUIRE_MESSAGE(result.code == 0, result.err);
    CHECK_MESSAGE(contains(result.err, "ddprun: restart 1 of 1"), result.err);
  }
}

TEST_CASE("one node restarts too") {
  Workplace place;
  const std::string config = place.config(kExperiment);
  const std::vector<std::string> length = {"train.steps=400", "checkpoint.every_steps=20", "log.every=1"};
  auto overrides = length;
  overrides.insert(overrides.end(), {"launch.nproc=2", "launch.max_restarts=2"});
  Job job(place, place.training(config, overrides));
  job.wait_for_steps();
  kill(job.ranks(2).at(1), SIGKILL);
  const auto result = job.launcher().wait(kLimit);
  REQUIRE_MESSAGE(result.code == 0, result.err);
  CHECK(contains(result.err, "ddprun: restart 1 of 2"));
  CHECK_FALSE(contains(result.err, "ddprun: restart 2 of 2"));
  std::filesystem::path newest;
  for (const auto& entry : std::filesystem::directory_iterator(place.runs())) newest = std::max(newest, entry.path());
  CHECK(weights_of(newest) == weights_of(undisturbed_run(place, config, 2, length)));
}

TEST_CASE("options that do not fit together are refused in one line") {
  Workplace place;
  const std::string config = place.config(kExperiment);
  const auto refused = [&](const std::vector<std::string>& options) {
    auto argv = place.training(config);
    argv.insert(argv.end(), options.begin(), options.end());
    const auto result = place.run(argv);
    CHECK(lines_of(result.err).size() == 1);
    return std::to_string(result.code) + ": " + last_line(result.err);
  };
  CHECK(contains(refused({"--nnodes=2"}), "2: --node-rank is missing: --nnodes 2 needs a number from 0 to 1"));
  CHECK(contains(refused({"--nnodes=2", "--node-rank=2"}), "2: --node-rank 2: expected a number below --nnodes 2"));
  CHECK(contains(refused({"--nnodes=2", "--node-rank=1"}), "--master-addr is missing"));
  CHECK(contains(refused({"--node-rank=1"}), " are for several nodes"));
  CHECK(contains(refused({"--nnodes=2", "--standalone"}), "--standalone is for one node"));
  // 203.0.113.1 is reserved for documentation; nothing is sent before the secret is asked for.
  CHECK(contains(refused({"--nnodes=2", "--node-rank=0", "--master-addr=203.0.113.1"}),
                 "4: ddprun: failed: processes of other hosts can reach 203.0.113.1, and the job has no secret: set "
                 "DDPRUN_SECRET"));
}

TEST_CASE("ddprun launch starts any program with torchrun's variables") {
  const Workplace place;
  const std::vector<std::string> shell = {
      "sh", "-c", "echo $RANK of $WORLD_SIZE, $LOCAL_RANK of $LOCAL_WORLD_SIZE, $GROUP_RANK, $MASTER_ADDR"};
  auto argv = std::vector<std::string>{"launch", "--nproc-per-node", "2"};
  argv.insert(argv.end(), shell.begin(), shell.end());
  const auto result = place.ddprun(argv);
  REQUIRE_MESSAGE(result.code == 0, result.err);
  CHECK(contains(result.out, "0 of 2, 0 of 2, 0, 127.0.0.1\n"));
  CHECK(contains(result.out, "[rank1] 1 of 2, 1 of 2, 0, 127.0.0.1\n"));
  const auto failed = place.ddprun({"launch", "sh", "-c", "exit 3"});
  CHECK(failed.code == 3);
  CHECK_MESSAGE(contains(last_line(failed.err), "rank 0 ("), failed.err);
}

TEST_CASE("a launcher that cannot start its program ends the job of all nodes, and all report its error") {
  const Workplace place;
  const int port = free_port();
  const auto start = [&](int node, const std::vector<std::string>& program_of_node) {
    std::vector<std::string> argv = {program(),
                                     "launch",
                                     "--nnodes=2",
                                     "--node-rank=" + std::to_string(node),
                                     "--master-addr=127.0.0.1",
                                     "--master-port=" + std::to_string(port)};
    argv.insert(argv.end(), program_of_node.begin(), program_of_node.end());
    return std::make_unique<Job>(place, argv);
  };
  const auto good = start(0, {"sleep", "100"}), bad = start(1, {"./no-such-program"});
  for (const auto& job : {std::cref(bad), std::cref(good)}) {
    const auto result = job.get()->launcher().wait(kLimit);
    CHECK(result.code == 1);
    CHECK_MESSAGE(contains(last_line(result.err), "no-such-program"), result.err);
    CHECK(result.elapsed < std::chrono::seconds(30));
  }
  CHECK(place.leftovers().empty());
}

}  // namespace
