// A host whose network goes down in the middle of the training, under the launchers of others: the ranks of the other
// hosts end and name it.
#include <doctest/doctest.h>

#include "e2e/cluster_launchers.hpp"
#include "e2e/mpirun.hpp"
#include "e2e/slurm.hpp"

using namespace ddprun::e2e;
using namespace ddprun::testing;
using namespace std::chrono_literals;

namespace {

const Argv kEndless = {"train.epochs=1000000", "checkpoint.every_epochs=0", "train.evaluate=false"};

std::string output_of(const Processes& processes) {
  std::string text;
  for (const auto& process : processes) text += process->out() + process->err();
  return text;
}

// `report`: what the launcher prints when a rank has ended with exit code 5, or "" if it prints none. srun and mpirun
// themselves wait for the lost host, until the test ends them.
void check_loss(const Cluster& cluster, const Processes& processes, const std::string& report) {
  const auto is_training = [&] { return contains(output_of(processes), "epoch 1 ["); };
  REQUIRE_MESSAGE(eventually(is_training, Cluster::kLimit), output_of(processes));
  const auto has_ranks = [&](int host) {
    return cluster.start(host, {"sh", "-c", "grep -qs ^ddprun-rank /proc/[0-9]*/comm"})->wait().code == 0;
  };
  for (int host = 0; host < Cluster::kHosts; ++host) CHECK(has_ranks(host));
  cluster.hosts().disconnect(2);
  const auto have_ended = [&] { return !has_ranks(0) && !has_ranks(1); };
  CHECK_MESSAGE(eventually(have_ended, 20s), output_of(processes));
  CHECK_MESSAGE(eventually([&] { return contains(output_of(processes), report); }, 20s), output_of(processes));
  int failures = 0;
  for (const std::string& line : lines_of(output_of(processes))) {
    if (!line.starts_with("ddprun: failed: ")) continue;
    ++failures;
    CHECK_MESSAGE((contains(line, "lost ranks 4, 5") || contains(line, "(node2): lost")), line);
  }
  CHECK(failures > 0);
}

TEST_CASE("torchrun: the ranks name a host that is cut off, and end with code 5") {
  require_hosts();
  if (!has_torchrun()) return;
  Cluster cluster;
  const Argv rendezvous = {"--rdzv-backend=c10d", "--rdzv-endpoint=" + Cluster::kMaster + ":" + Cluster::kPort};
  Processes agents = with_torchrun(cluster, kEndless + Argv{"comm.backend=gloo"}, rendezvous);
  const auto lost = std::move(agents.back());  // for its ranks, the other hosts are lost
  agents.pop_back();
  check_loss(cluster, agents, "exitcode  : 5");
  for (const auto& agent : agents) CHECK(agent->wait().code == 1);
}

TEST_CASE("mpirun: the ranks name a host that is cut off") {
  require_hosts();
  if (!has_mpirun()) return;
  Cluster cluster;
  check_loss(cluster, with_mpirun(cluster, kEndless + Argv{"comm.backend=gloo"}), "");
}

TEST_CASE("srun: the ranks name a host that is cut off, and end with code 5") {
  require_hosts();
  if (!Slurm::is_installed()) return;
  Cluster cluster;
  const Slurm slurm(cluster);
  Processes processes;
  processes.push_back(slurm.start(Slurm::srun({}, kEndless + Argv{"comm.backend=" + cluster_backends().back()})));
  check_loss(cluster, processes, "Exited with exit code 5");
}

}  // namespace
