// Three hosts with two ranks each, which share a network and no disk: the ranks train as one process does, under every
// launcher, and the other hosts notice a lost one.
#include <doctest/doctest.h>

#include "e2e/cluster_launchers.hpp"
#include "e2e/run_files.hpp"

using namespace ddprun::e2e;
using namespace ddprun::testing;

namespace {

constexpr int kHosts = Cluster::kHosts;
constexpr auto kLimit = Cluster::kLimit;
const std::string &kMaster = Cluster::kMaster, &kPort = Cluster::kPort;

void wait_until_prints(Process& launcher, const std::string& text) {
  REQUIRE_MESSAGE(eventually([&] { return contains(launcher.err(), text); }, kLimit), launcher.err());
}

template <typename Start>
void check_training(Start start) {
  for (const std::string& backend : cluster_backends()) {
    CAPTURE(backend);
    Cluster cluster;
    check_equal(cluster.alone(), cluster, start(cluster, Argv{"comm.backend=" + backend}));
  }
}

TEST_CASE("three launchers of ddprun train as one process, over gloo and ucx, without a disk in common") {
  require_hosts();
  check_training([](Cluster& cluster, const Argv& overrides) { return with_own_launcher(cluster, overrides); });
}

TEST_CASE("six processes with the variables of env:// train as one process, over gloo and ucx") {
  require_hosts();
  check_training(with_variables);
}

TEST_CASE("the name of node 0 is a loopback address there, as on Debian, and every host has a bridge of Docker") {
  require_hosts();
  const auto prepare = [](const Cluster& cluster) {
    const std::string names = (cluster.folder() / "names of node 0").string();
    cluster.hosts().run(0, "sed 's/.* node0$/127.0.1.1 node0/' /etc/hosts > '" + names + "' && mount --bind '" + names +
                               "' /etc/hosts");
    for (int host = 0; host < kHosts; ++host) {
      cluster.hosts().run(host, "ip link add docker0 up type bridge && ip address add 172.17.0.1/16 dev docker0");
    }
  };
  check_training([&](Cluster& cluster, const Argv& overrides) {
    prepare(cluster);
    return with_own_launcher(cluster, overrides);
  });
  Cluster cluster;
  prepare(cluster);
  check_equal(cluster.alone(), cluster, with_variables(cluster, {"comm.backend=gloo"}));
}

TEST_CASE("three agents of torchrun train as one process: static rendezvous over ucx, c10d over gloo") {
  require_hosts();
  if (!has_torchrun()) return;
  for (const std::string& backend : cluster_backends()) {
    CAPTURE(backend);
    Cluster cluster;
    const Argv rendezvous = backend == "gloo" ? Argv{"--rdzv-backend=c10d", "--rdzv-endpoint=" + kMaster + ":" + kPort}
                                              : Argv{"--master-addr=" + kMaster, "--master-port=" + kPort};
    check_equal(cluster.alone(), cluster, with_torchrun(cluster, {"comm.backend=" + backend}, rendezvous));
  }
}

TEST_CASE("after a rank is killed, the launchers start all ranks again from the newest checkpoint") {
  require_hosts();
  Cluster cluster;
  const Processes launchers = with_own_launcher(
      cluster, {"comm.backend=gloo", "launch.max_restarts=1", "train.epochs=20", "checkpoint.every_steps=10"});
  wait_until_prints(*launchers[0], "epoch 3 done");
  const std::string kill_rank_5 = "kill -9 $(grep -lx ddprun-rank5 /proc/[0-9]*/comm | cut -d/ -f3)";
  REQUIRE(cluster.start(2, {"sh", "-c", kill_rank_5})->wait(kLimit).code == 0);
  for (const auto& launcher : launchers) {
    const auto result = launcher->wait(kLimit);
    CHECK_MESSAGE(result.code == 0, result.err);
    CHECK_MESSAGE(contains(result.err, "ddprun: restart 1 of 1"), result.err);
  }
  CHECK_MESSAGE(contains(launchers[0]->err(), "resuming from "), launchers[0]->err());
  const auto run = cluster.run(0);
  CHECK(commits_of(run).back().step == 200);
  const auto again = with_own_launcher(cluster, {"comm.backend=gloo", "train.epochs=20", "experiment.output=whole"});
  for (const auto& launcher : again) REQUIRE(launcher->wait(kLimit).code == 0);
  CHECK(weights_of(run) == weights_of(cluster.run(0, "whole")));
}

TEST_CASE("a host whose link goes down in the middle of the training: all launchers end with code 5 and name it") {
  require_hosts();
  for (const std::string& backend : cluster_backends()) {
    CAPTURE(backend);
    Cluster cluster;
    const Processes launchers = with_own_launcher(cluster, {"comm.backend=" + backend, "train.epochs=1000000"});
    wait_until_prints(*launchers[0], "epoch 1 [");
    cluster.hosts().run(2, "ip link set eth0 down");
    for (int host = 0; host < kHosts; ++host) {
      const auto result = launchers[static_cast<std::size_t>(host)]->wait(kLimit);
      CAPTURE(host);
      CHECK_MESSAGE(result.code == 5, result.err);
      if (host == 2) continue;  // it has lost the others
      CHECK_MESSAGE(
          last_line(result.err) == "ddprun: failed: ranks 4 and 5 (node2): lost: this host does not answer any more",
          result.err);
    }
  }
}

TEST_CASE("with --nnodes 1:3, the hosts that are left go on without one that is cut off") {
  require_hosts();
  for (const std::string& backend : cluster_backends()) {
    CAPTURE(backend);
    Cluster cluster;
    const Argv over = {"comm.backend=" + backend, "train.epochs=120", "strategy.virtual_ranks=8", "data.batch_size=48",
                       "checkpoint.every_epochs=40"};
    const Processes launchers = with_own_launcher(cluster, over, "1:3");
    wait_until_prints(*launchers[0], "epoch 3 done");
    cluster.hosts().run(2, "ip link set eth0 down");
    for (int host = 0; host < kHosts; ++host) {
      const auto result = launchers[static_cast<std::size_t>(host)]->wait(kLimit);
      CAPTURE(host);
      CHECK_MESSAGE(result.code == (host == 2 ? 5 : 0), result.err);
      if (host == 2) continue;  // it has lost node 0
      CHECK_MESSAGE(
          contains(result.err, "ranks 4 and 5 (node2): lost: this host does not answer any more; 4 ranks go on"),
          result.err);
    }
    CHECK_FALSE(std::filesystem::exists(cluster.run(2) / "summary.json"));
    const auto alone =
        cluster.start(1, Cluster::training({"-n", "1"}, over + Argv{"experiment.output=alone"}))->wait(kLimit);
    REQUIRE_MESSAGE(alone.code == 0, alone.err);
    CHECK(summary_of(cluster.run(0)).at("weights.sha256") == summary_of(cluster.run(1, "alone")).at("weights.sha256"));
  }
}

}  // namespace
