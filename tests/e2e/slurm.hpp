// A real Slurm on the cluster: slurmctld and munged on host 0, and a slurmd on each host.
#pragma once

#include "e2e/cluster.hpp"

namespace ddprun::e2e {

class Slurm {
 public:
  // Prints why not: the Debian packages slurm-wlm and munge.
  static bool is_installed();

  // Returns when all nodes take jobs. Throws std::runtime_error with the logs if they do not within a minute. The
  // daemons end with the cluster, which must outlive this object.
  explicit Slurm(const Cluster& cluster);

  // Starts one of Slurm's commands on host 0.
  std::unique_ptr<testing::Process> start(const Argv& command) const;
  testing::ProcessResult run(const Argv& command) const { return start(command)->wait(Cluster::kLimit); }

  // argv of an srun of six ranks, two on each host.
  static Argv srun(const Argv& options, const Argv& overrides);

 private:
  void write_configuration() const;
  std::string logs() const;
  std::filesystem::path folder() const { return cluster_.folder() / "slurm"; }

  const Cluster& cluster_;
  Processes daemons_;
};

}  // namespace ddprun::e2e
