// Three hosts with two ranks each, which share a network and no disk: the ranks train as one process does, under every
// launcher, and the other hosts notice a lost one.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <memory>

#include "e2e/over_backend.hpp"
#include "e2e/program.hpp"
#include "e2e/run_files.hpp"
#include "tools/conformance/hosts.hpp"

using namespace ddprun::e2e;
using namespace ddprun::testing;

namespace {

constexpr int kHosts = 3, kPerHost = 2, kRanks = kHosts * kPerHost;
constexpr std::chrono::seconds kLimit{120};
const std::string kMaster = "node0";
const std::string kPort = "29500";  // the network has no other programs

std::string name_of(int host) {
  return "node" + std::to_string(host);
}

using Argv = std::vector<std::string>;

Argv operator+(Argv a, const Argv& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::vector<std::string> backends() {
  if (HAS_UCX) return {"gloo", "ucx"};
  std::cout << "skipped with ucx: this build has no such backend\n";
  return {"gloo"};
}

class Cluster {
 public:
  Cluster() : hosts_(kHosts) {
    const auto disk = place_.folder() / "disk";
    std::filesystem::create_directory(disk);
    const auto names = place_.folder() / "names";
    std::ofstream(names) << "127.0.0.1 localhost\n";
    for (int host = 0; host < kHosts; ++host) {
      std::ofstream(names, std::ios::app) << hosts_.address(host) << " " << name_of(host) << "\n";
    }
    for (int host = 0; host < kHosts; ++host) {
      std::filesystem::create_directories(disk_of(host));
      std::ofstream(disk_of(host) / "exp.toml") << kExperiment;
      hosts_.run(host, "mount --bind " + disk_of(host).string() + " " + disk.string());
      hosts_.run(host, "mount --bind " + names.string() + " /etc/hosts");
    }
  }

  const Hosts& hosts() const { return hosts_; }
  // The newest run whose records are on the host.
  std::filesystem::path run(int host, const std::string& output = "runs") const {
    const std::vector<std::filesystem::path> found(std::filesystem::directory_iterator(disk_of(host) / output), {});
    REQUIRE_FALSE(found.empty());
    return *std::max_element(found.begin(), found.end());
  }

  // argv of ddprun with the options, and without --config FILE.
  static Argv training(const Argv& options, const Argv& overrides) {
    Argv argv = Argv{program()} + options + Argv{"--config", "exp.toml"};
    for (const std::string& each : overrides) argv = argv + Argv{"--set", each};
    return argv;
  }

  // Starts the command on the host, in the folder that is its disk.
  std::unique_ptr<Process> start(int host, const Argv& command, const std::vector<std::string>& variables = {}) const {
    const std::string disk = (place_.folder() / "disk").string();
    const Argv shell = {
        "unshare", "--uts", "sh", "-c", "hostname " + name_of(host) + " && cd " + disk + " && exec \"$@\"", "sh"};
    return std::make_unique<Process>(hosts_.prefix(host) + shell + command,
                                     std::vector<std::string>{"XDG_RUNTIME_DIR=/dev/shm", "TMPDIR=/dev/shm",
                                                              "DDPRUN_SECRET=" + std::string(64, '5')} +
                                         variables);
  }

  // One process on the same samples.
  Trained alone() {
    const std::string config = place_.config(kExperiment);
    const auto result = place_.run(place_.training(config, {"strategy.kind=single", "data.sampler=distributed"}));
    REQUIRE_MESSAGE(result.code == 0, result.err);
    const auto run = place_.new_run();
    return {losses_of(run, 1), weights_of(run), {}};
  }

 private:
  std::filesystem::path disk_of(int host) const { return place_.folder() / ("host" + std::to_string(host)); }

  Workplace place_;
  Hosts hosts_;  // ends before the folder does
};

using Processes = std::vector<std::unique_ptr<Process>>;

// Each starts all processes of a job. `overrides` are keys of the config.
Processes with_own_launcher(const Cluster& cluster, const Argv& overrides) {
  Processes launchers;
  for (int host = 0; host < kHosts; ++host) {
    const Argv options = {"--nnodes",         "3",     "--node-rank",   std::to_string(host),
                          "--master-addr",    kMaster, "--master-port", kPort,
                          "--nproc-per-node", "2"};
    launchers.push_back(cluster.start(host, Cluster::training(options, overrides)));
  }
  return launchers;
}

Processes with_variables(const Cluster& cluster, const Argv& overrides) {
  Processes ranks;
  for (int rank = 0; rank < kRanks; ++rank) {
    ranks.push_back(cluster.start(rank / kPerHost, Cluster::training({}, overrides),
                                  {"RANK=" + std::to_string(rank), "WORLD_SIZE=" + std::to_string(kRanks),
                                   "MASTER_ADDR=" + kMaster, "MASTER_PORT=" + kPort}));
  }
  return ranks;
}

Processes with_torchrun(const Cluster& cluster, const Argv& overrides, const Argv& rendezvous) {
  Processes agents;
  for (int host = 0; host < kHosts; ++host) {
    const Argv options = {
        TORCHRUN,      "--nnodes=3",         "--nproc-per-node=2", "--local-addr", cluster.hosts().address(host),
        "--node-rank", std::to_string(host), "--no-python"};
    agents.push_back(cluster.start(host, options + rendezvous + Cluster::training({}, overrides)));
  }
  return agents;
}

void check_equal(const Trained& expected, const Cluster& cluster, const Processes& processes) {
  for (const auto& process : processes) {
    const auto result = process->wait(kLimit);
    REQUIRE_MESSAGE(result.code == 0, result.err);
  }
  const auto run = cluster.run(0);
  const auto losses = losses_of(run, kRanks);
  CHECK(losses.size() == 10);
  CHECK(losses.front() != doctest::Approx(losses.back()).epsilon(0.02));
  CHECK(distance(losses, expected.losses) < 1e-5);
  CHECK(distance(weights_of(run), expected.weights) < 1e-5);
  CHECK(summary_of(run).at("world") == kRanks);
  for (int host = 1; host < kHosts; ++host) CHECK_FALSE(std::filesystem::exists(cluster.run(host) / "summary.json"));
}

bool no_hosts() {
  if (Hosts::are_possible()) return false;
  std::cout << std::flush;
  std::exit(77);
}

template <typename Start>
void check_training(Start start) {
  for (const std::string& backend : backends()) {
    CAPTURE(backend);
    Cluster cluster;
    check_equal(cluster.alone(), cluster, start(cluster, Argv{"comm.backend=" + backend}));
  }
}

TEST_CASE("three launchers of ddprun train as one process, over gloo and ucx, without a disk in common") {
  if (no_hosts()) return;
  check_training(with_own_launcher);
}

TEST_CASE("six processes with the variables of env:// train as one process, over gloo and ucx") {
  if (no_hosts()) return;
  check_training(with_variables);
}

TEST_CASE("three agents of torchrun train as one process: static rendezvous over ucx, c10d over gloo") {
  if (no_hosts()) return;
  if (!std::filesystem::exists(TORCHRUN)) {
    std::cout << "skipped: there is no torchrun at " TORCHRUN "\n";
    return;
  }
  for (const std::string& backend : backends()) {
    CAPTURE(backend);
    Cluster cluster;
    const Argv rendezvous = backend == "gloo" ? Argv{"--rdzv-backend=c10d", "--rdzv-endpoint=" + kMaster + ":" + kPort}
                                              : Argv{"--master-addr=" + kMaster, "--master-port=" + kPort};
    check_equal(cluster.alone(), cluster, with_torchrun(cluster, {"comm.backend=" + backend}, rendezvous));
  }
}

TEST_CASE("after a rank is killed, the launchers start all ranks again from the newest checkpoint") {
  if (no_hosts()) return;
  Cluster cluster;
  const Processes launchers = with_own_launcher(
      cluster, {"comm.backend=gloo", "launch.max_restarts=1", "train.epochs=20", "checkpoint.every_steps=10"});
  const auto trains = [&] { return contains(launchers[0]->err(), "epoch 3 done"); };
  REQUIRE_MESSAGE(eventually(trains, kLimit), launchers[0]->err());
  const std::string kill_rank_5 = "kill -9 $(grep -lz DDPRUN_RANK=5 /proc/[0-9]*/environ | cut -d/ -f3)";
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
  if (no_hosts()) return;
  for (const std::string& backend : backends()) {
    CAPTURE(backend);
    Cluster cluster;
    const Processes launchers = with_own_launcher(cluster, {"comm.backend=" + backend, "train.epochs=1000000"});
    const auto trains = [&] { return contains(launchers[0]->err(), "epoch 1 ["); };
    REQUIRE_MESSAGE(eventually(trains, kLimit), launchers[0]->err());
    cluster.hosts().run(2, "ip link set eth0 down");
    for (int host = 0; host < kHosts; ++host) {
      const auto result = launchers[static_cast<std::size_t>(host)]->wait(kLimit);
      CAPTURE(host);
      CHECK_MESSAGE(result.code == 5, result.err);
      if (host == 2) continue;  // it has lost the others
      CHECK_MESSAGE(last_line(result.err) ==
                        "ddprun: failed: ranks 4 and 5 (node2): lost: nothing is heard from this host any more",
                    result.err);
    }
  }
}

}  // namespace
