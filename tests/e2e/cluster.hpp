// A cluster for tests: three hosts made of namespaces, which share a network and no disk, and a user who logs in to
// start jobs of two ranks per host.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "e2e/over_backend.hpp"
#include "e2e/program.hpp"
#include "testing/hosts.hpp"

namespace ddprun::e2e {

using Processes = std::vector<std::unique_ptr<testing::Process>>;

// "node0", "node1", ...: every host resolves these names.
std::string name_of(int host);

class Cluster {
 public:
  static constexpr int kHosts = 3, kPerHost = 2, kRanks = kHosts * kPerHost;
  static constexpr std::chrono::seconds kLimit{120};
  static const std::string kMaster, kPort;  // the network has no other programs

  Cluster();  // each host's disk has kExperiment as exp.toml

  const testing::Hosts& hosts() const { return hosts_; }
  // Visible to all hosts under the same path. For the files of a launcher, not of the job.
  std::filesystem::path folder() const { return place_.folder(); }
  // The folder in which commands run. Each host sees its own disk there.
  std::filesystem::path disk() const { return place_.folder() / "disk"; }
  // The newest run whose records are on the host.
  std::filesystem::path run(int host, const std::string& output = "runs") const;

  // argv of ddprun with the options, and without --config FILE.
  static Argv training(const Argv& options, const Argv& overrides);

  // argv that runs a command on the host, in the folder that is its disk: append the command.
  Argv on(int host) const;
  // argv that runs a command on a machine that only shares the network of the hosts. Its processes can enter the hosts,
  // as those of a host cannot.
  Argv on_login() const;
  // Starts the command on the host, with the job's secret.
  std::unique_ptr<testing::Process> start(int host, const Argv& command, const Argv& variables = {}) const;

  // One process on the same samples.
  Trained alone();

 private:
  std::filesystem::path disk_of(int host) const { return place_.folder() / ("host" + std::to_string(host)); }

  Workplace place_;
  testing::Hosts hosts_;  // the last one is the login machine; ends before the folder does
};

// The environment of each rank that a test starts.
extern const Argv kJobVariables;

// Those that this build has: gloo, ucx.
std::vector<std::string> cluster_backends();
// Exits as skipped where there can be no hosts.
void require_hosts();
// Waits for the processes. The job of six ranks, whose rank 0 was on host 0, equals one process.
void check_equal(const Trained& expected, const Cluster& cluster, const Processes& processes);

}  // namespace ddprun::e2e
