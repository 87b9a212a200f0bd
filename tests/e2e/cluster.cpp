#include "e2e/cluster.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iostream>

#include "e2e/run_files.hpp"

namespace ddprun::e2e {

using testing::Hosts;
using testing::Process;

const std::string Cluster::kMaster = "node0";
const std::string Cluster::kPort = "29500";
const Argv kJobVariables = {"XDG_RUNTIME_DIR=/dev/shm", "TMPDIR=/dev/shm", "DDPRUN_SECRET=" + std::string(64, '5')};

std::string name_of(int host) {
  return "node" + std::to_string(host);
}

Cluster::Cluster() : hosts_(kHosts + 1) {
  std::filesystem::create_directory(disk());
  const auto names = folder() / "names";
  std::ofstream(names) << "127.0.0.1 localhost\n";
  for (int host = 0; host < kHosts; ++host) {
    std::ofstream(names, std::ios::app) << hosts_.address(host) << " " << name_of(host) << "\n";
  }
  for (int host = 0; host < kHosts; ++host) {
    std::filesystem::create_directories(disk_of(host));
    std::ofstream(disk_of(host) / "exp.toml") << kExperiment;
    hosts_.run(host, "mount --bind " + disk_of(host).string() + " " + disk().string());
    hosts_.run(host, "mount --bind " + names.string() + " /etc/hosts");
  }
}

std::filesystem::path Cluster::run(int host, const std::string& output) const {
  const std::vector<std::filesystem::path> found(std::filesystem::directory_iterator(disk_of(host) / output), {});
  REQUIRE_FALSE(found.empty());
  return *std::max_element(found.begin(), found.end());
}

Argv Cluster::training(const Argv& options, const Argv& overrides) {
  Argv argv = Argv{program()} + options + Argv{"--config", "exp.toml"};
  for (const std::string& each : overrides) argv = argv + Argv{"--set", each};
  return argv;
}

Argv Cluster::on(int host) const {
  return hosts_.prefix(host) + Argv{"unshare",
                                    "--uts",
                                    "sh",
                                    "-c",
                                    "hostname " + name_of(host) + " && cd " + disk().string() + " && exec \"$@\"",
                                    "sh"};
}

Argv Cluster::on_login() const {
  return hosts_.prefix(kHosts, {"--net"});
}

std::unique_ptr<Process> Cluster::start(int host, const Argv& command, const Argv& variables) const {
  return std::make_unique<Process>(on(host) + command, kJobVariables + variables);
}

Trained Cluster::alone() {
  const std::string config = place_.config(kExperiment);
  const auto result = place_.run(place_.training(config, {"strategy.kind=single", "data.sampler=distributed"}));
  REQUIRE_MESSAGE(result.code == 0, result.err);
  const auto run = place_.new_run();
  return {losses_of(run, 1), weights_of(run), {}};
}

std::vector<std::string> cluster_backends() {
  if (HAS_UCX) return {"gloo", "ucx"};
  std::cout << "skipped with ucx: this build has no such backend\n";
  return {"gloo"};
}

void require_hosts() {
  if (Hosts::are_possible()) return;
  std::cout << std::flush;
  std::exit(77);
}

void check_equal(const Trained& expected, const Cluster& cluster, const Processes& processes) {
  for (const auto& process : processes) {
    const auto result = process->wait(Cluster::kLimit);
    REQUIRE_MESSAGE(result.code == 0, result.err);
  }
  const auto run = cluster.run(0);
  const auto losses = losses_of(run, Cluster::kRanks);
  CHECK(losses.size() == 10);
  CHECK(losses.front() != doctest::Approx(losses.back()).epsilon(0.02));
  CHECK(distance(losses, expected.losses) < 1e-5);
  CHECK(distance(weights_of(run), expected.weights) < 1e-5);
  CHECK(summary_of(run).at("world") == Cluster::kRanks);
  for (int host = 1; host < Cluster::kHosts; ++host) {
    CHECK_FALSE(std::filesystem::exists(cluster.run(host) / "summary.json"));
  }
}

}  // namespace ddprun::e2e
