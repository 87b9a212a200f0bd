// Three hosts of two ranks under the engines of clusters: srun, mpirun and mpiexec.
#include <doctest/doctest.h>

#include "e2e/cluster_launchers.hpp"
#include "e2e/mpirun.hpp"
#include "e2e/run_files.hpp"
#include "e2e/slurm.hpp"

using namespace ddprun::e2e;
using namespace ddprun::testing;

namespace {

TEST_CASE("mpirun with a daemon on each of three hosts trains as one process, over gloo and ucx") {
  require_hosts();
  if (!has_mpirun()) return;
  for (const std::string& backend : cluster_backends()) {
    CAPTURE(backend);
    Cluster cluster;
    check_equal(cluster.alone(), cluster, with_mpirun(cluster, {"comm.backend=" + backend}));
  }
}

TEST_CASE("mpiexec of MPICH with a daemon on each of three hosts trains as one process") {
  require_hosts();
  if (!has_mpich()) return;
  Cluster cluster;
  check_equal(cluster.alone(), cluster, with_mpich(cluster, {"comm.backend=gloo"}));
}

TEST_CASE("srun of three nodes trains as one process, over gloo and ucx") {
  require_hosts();
  if (!Slurm::is_installed()) return;
  Cluster cluster;
  const Slurm slurm(cluster);
  const Trained expected = cluster.alone();
  for (const std::string& backend : cluster_backends()) {
    CAPTURE(backend);
    Processes processes;
    processes.push_back(slurm.start(Slurm::srun({}, {"comm.backend=" + backend})));
    check_equal(expected, cluster, processes);
  }
}

TEST_CASE(
    "scancel --signal=USR1 stops a job of srun after a common step, and the same command resumes it bit for bit") {
  require_hosts();
  if (!Slurm::is_installed()) return;
  Cluster cluster;
  const Slurm slurm(cluster);
  const auto train = [&](const std::string& steps, const std::string& output) {
    return slurm.start(Slurm::srun({"--job-name=train"},
                                   {"comm.backend=gloo", "checkpoint.resume=auto", "checkpoint.every_epochs=0",
                                    "train.evaluate=false", "train.steps=" + steps, "experiment.output=" + output}));
  };
  const auto first = train("1000000", "runs");
  const auto is_training = [&] { return contains(first->err(), "epoch 1 done"); };
  REQUIRE_MESSAGE(eventually(is_training), first->err());
  REQUIRE(slurm.run({"scancel", "--signal=USR1", "--name=train"}).code == 0);
  const auto stopped = first->wait(Cluster::kLimit);
  CHECK_MESSAGE(stopped.code == 143, stopped.err);
  const auto broken = cluster.run(0);
  const int64_t step = commits_of(broken).back().step;
  CHECK_MESSAGE(contains(stopped.err, "ddprun: stopping after step " + std::to_string(step) + "\n"), stopped.err);
  for (int rank = 0; rank < Cluster::kRanks; ++rank) {
    CHECK(steps_of(broken, rank).size() == static_cast<std::size_t>(step));
  }

  const std::string end = std::to_string(step + 13);
  const auto resumed = train(end, "runs")->wait(Cluster::kLimit);
  REQUIRE_MESSAGE(resumed.code == 0, resumed.err);
  CHECK_MESSAGE(contains(resumed.err, "resuming from "), resumed.err);
  CHECK(steps_of(cluster.run(0), 5).front().at("step") == step + 1);
  const auto whole = train(end, "whole")->wait(Cluster::kLimit);
  REQUIRE_MESSAGE(whole.code == 0, whole.err);
  CHECK(commits_of(cluster.run(0)).back().step == step + 13);
  CHECK(tensors_of(cluster.run(0)) == tensors_of(cluster.run(0, "whole")));
}

}  // namespace
