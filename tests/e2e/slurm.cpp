#include "e2e/slurm.hpp"

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <stdexcept>

#include "support/read_file.hpp"

namespace ddprun::e2e {

using testing::Process;

bool Slurm::is_installed() {
  for (const std::string command : {"slurmctld", "slurmd", "srun", "munged"}) {
    if (std::system(("command -v " + command + " >/dev/null").c_str()) == 0) continue;
    std::cout << "skipped: there is no " << command << " on PATH (slurmctld, slurmd, slurm-client, munge)\n";
    return false;
  }
  return true;
}

Slurm::Slurm(const Cluster& cluster) : cluster_(cluster) {
  std::filesystem::create_directories(folder() / "state");
  for (int host = 0; host < Cluster::kHosts; ++host) {
    std::filesystem::create_directory(folder() / ("spool-" + name_of(host)));
  }
  std::filesystem::permissions(cluster.folder(), std::filesystem::perms(0755));  // munged asks for it
  write_configuration();
  const std::string munge = (folder() / "munge").string();
  std::ofstream(munge + ".key") << std::string(128, 'k');
  std::filesystem::permissions(munge + ".key", std::filesystem::perms(0600));
  // A munged of its own, whose socket all hosts see: that of this machine is left alone.
  daemons_.push_back(cluster.start(
      0, {"munged", "--foreground", "--force", "--key-file=" + munge + ".key", "--socket=" + munge + ".socket",
          "--seed-file=" + munge + ".seed", "--pid-file=" + munge + ".pid", "--log-file=" + munge + ".log"}));
  const auto has_munge = [&] { return std::filesystem::exists(munge + ".socket"); };
  if (!testing::eventually(has_munge)) throw std::runtime_error("munged has not started:\n" + daemons_.back()->err());
  const Argv configuration = {"-D", "-f", (folder() / "slurm.conf").string()};
  daemons_.push_back(cluster.start(0, Argv{"slurmctld"} + configuration));
  for (int host = 0; host < Cluster::kHosts; ++host) {
    daemons_.push_back(cluster.start(host, Argv{"slurmd"} + configuration));
  }
  const auto all_idle = [&] { return run({"sinfo", "-h", "-t", "idle", "-o", "%D"}).out == "3\n"; };
  if (!testing::eventually(all_idle)) throw std::runtime_error("Slurm's nodes are not ready:\n" + logs());
}

void Slurm::write_configuration() const {
  const std::string in = folder().string() + "/";
  // The hosts have no cgroups, and slurmd looks for them unless a version is named.
  std::ofstream(folder() / "cgroup.conf") << "CgroupPlugin=cgroup/v1\n";
  std::ofstream(folder() / "slurm.conf")
      << "ClusterName=test\nSlurmctldHost=node0\nSlurmUser=root\n"
      << "AuthType=auth/munge\nAuthInfo=socket=" << in << "munge.socket\n"
      << "StateSaveLocation=" << in << "state\nSlurmdSpoolDir=" << in << "spool-%n\n"
      << "SlurmctldPidFile=" << in << "slurmctld.pid\nSlurmdPidFile=" << in << "%n.pid\n"
      << "SlurmctldLogFile=" << in << "slurmctld.log\nSlurmdLogFile=" << in << "%n.log\n"
      << "ProctrackType=proctrack/pgid\nTaskPlugin=task/none\nJobAcctGatherType=jobacct_gather/none\n"
      << "SelectType=select/cons_tres\nSchedulerType=sched/builtin\nMpiDefault=none\n"
      << "SlurmdParameters=config_overrides\n"  // also on a machine with fewer cores
      << "NodeName=node[0-2] CPUs=2\nPartitionName=all Nodes=node[0-2] Default=YES\n";
}

std::string Slurm::logs() const {
  std::string text;
  for (const auto& entry : std::filesystem::directory_iterator(folder())) {
    if (entry.path().extension() != ".log") continue;
    text += entry.path().filename().string() + ":\n" + testing::read_file(entry.path());
  }
  return text;
}

std::unique_ptr<Process> Slurm::start(const Argv& command) const {
  return cluster_.start(0, command, {"SLURM_CONF=" + (folder() / "slurm.conf").string()});
}

Argv Slurm::srun(const Argv& options, const Argv& overrides) {
  return Argv{"srun", "--nodes=3", "--ntasks=6", "--mpi=none"} + options + Cluster::training({}, overrides);
}

}  // namespace ddprun::e2e
