#include "e2e/cluster_launchers.hpp"

#include <fstream>
#include <iostream>

namespace ddprun::e2e {

using testing::Process;

Processes with_own_launcher(const Cluster& cluster, const Argv& overrides, const std::string& nnodes) {
  Processes launchers;
  for (int host = 0; host < Cluster::kHosts; ++host) {
    const Argv options = {"--nnodes",       nnodes,          "--node-rank",  std::to_string(host), "--master-addr",
                          Cluster::kMaster, "--master-port", Cluster::kPort, "--nproc-per-node",   "2"};
    launchers.push_back(cluster.start(host, Cluster::training(options, overrides)));
  }
  return launchers;
}

Processes with_variables(const Cluster& cluster, const Argv& overrides) {
  Processes ranks;
  for (int rank = 0; rank < Cluster::kRanks; ++rank) {
    ranks.push_back(cluster.start(rank / Cluster::kPerHost, Cluster::training({}, overrides),
                                  {"RANK=" + std::to_string(rank), "WORLD_SIZE=" + std::to_string(Cluster::kRanks),
                                   "MASTER_ADDR=" + Cluster::kMaster, "MASTER_PORT=" + Cluster::kPort}));
  }
  return ranks;
}

Processes with_torchrun(const Cluster& cluster, const Argv& overrides, const Argv& rendezvous) {
  Processes agents;
  for (int host = 0; host < Cluster::kHosts; ++host) {
    const Argv options = {
        TORCHRUN,      "--nnodes=3",         "--nproc-per-node=2", "--local-addr", cluster.hosts().address(host),
        "--node-rank", std::to_string(host), "--no-python"};
    agents.push_back(cluster.start(host, options + rendezvous + Cluster::training({}, overrides)));
  }
  return agents;
}

bool has_torchrun() {
  if (std::filesystem::exists(TORCHRUN)) return true;
  std::cout << "skipped: there is no torchrun at " TORCHRUN "\n";
  return false;
}

namespace {

// What the launchers of MPI use as ssh, to start a daemon on each host: `agent [-OPTIONS] HOST COMMAND...`. It enters
// the host's namespaces, which the kernel does not allow a process of another host. So they run on the login machine.
// As with ssh, the daemon does not get their variables.
std::string write_agent(const Cluster& cluster) {
  const auto agent = cluster.folder() / "agent";
  std::ofstream script(agent);
  script << "#!/bin/sh\nwhile case $1 in -*) true ;; *) false ;; esac do shift; done\n"
         << "host=$1\nshift\ncase $host in\n";
  for (int host = 0; host < Cluster::kHosts; ++host) {
    script << name_of(host) << ") exec env -i PATH=\"$PATH\" TMPDIR=/dev/shm";
    for (const std::string& word : cluster.on(host)) script << " '" << word << "'";
    script << " sh -c \"$*\" ;;\n";
  }
  script << "esac\necho \"no host $host\" >&2\nexit 1\n";
  script.close();
  std::filesystem::permissions(agent, std::filesystem::perms::owner_all);
  return agent;
}

Processes on_login(const Cluster& cluster, const Argv& launcher, const Argv& overrides, const Argv& variables) {
  Processes processes;
  processes.push_back(std::make_unique<Process>(cluster.on_login() + launcher + Cluster::training({}, overrides),
                                                Argv{"TMPDIR=" + cluster.folder().string()} + variables));
  return processes;
}

}  // namespace

Processes with_mpirun(const Cluster& cluster, const Argv& overrides) {
  Argv argv = {"mpirun", "--allow-run-as-root",     "--bind-to", "none",
               "--host", "node0:2,node1:2,node2:2", "--wdir",    cluster.disk().string()};
  for (const std::string& variable : kJobVariables) argv = argv + Argv{"-x", variable};
  argv = argv + Argv{"-x", "MASTER_ADDR=" + Cluster::kMaster, "-x", "MASTER_PORT=" + Cluster::kPort};
  return on_login(cluster, argv, overrides,
                  {"OMPI_MCA_plm_rsh_agent=" + write_agent(cluster), "OMPI_MCA_plm_rsh_no_tree_spawn=1",
                   "OMPI_MCA_oob_tcp_if_include=eth0"});
}

bool has_mpich() {
  if (std::filesystem::exists(MPICH)) return true;
  std::cout << "skipped: there is no MPICH at " MPICH " (cmake/setup/torch-tests.txt)\n";
  return false;
}

Processes with_mpich(const Cluster& cluster, const Argv& overrides) {
  const Argv argv = Argv{MPICH, "-n", "6", "-ppn", "2", "-hosts", "node0,node1,node2", "-iface", "eth0"} +
                    Argv{"-launcher", "ssh", "-launcher-exec", write_agent(cluster)} +
                    Argv{"-wdir", cluster.disk().string(), "-genv", "TMPDIR", "/dev/shm"} +
                    Argv{"-genvlist", "XDG_RUNTIME_DIR,DDPRUN_SECRET", "-genv", "MASTER_ADDR", Cluster::kMaster} +
                    Argv{"-genv", "MASTER_PORT", Cluster::kPort};
  return on_login(cluster, argv, overrides, kJobVariables);
}

}  // namespace ddprun::e2e
