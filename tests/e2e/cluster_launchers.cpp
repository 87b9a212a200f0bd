#include "e2e/cluster_launchers.hpp"

#include <fstream>
#include <iostream>

namespace ddprun::e2e {

using testing::Process;

Processes with_own_launcher(const Cluster& cluster, const Argv& overrides) {
  Processes launchers;
  for (int host = 0; host < Cluster::kHosts; ++host) {
    const Argv options = {"--nnodes",         "3",
                          "--node-rank",      std::to_string(host),
                          "--master-addr",    Cluster::kMaster,
                          "--master-port",    Cluster::kPort,
                          "--nproc-per-node", "2"};
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

// mpirun starts its daemon on each host through a command that it uses as ssh: `agent HOST COMMAND...`. The agent
// enters the host's namespaces, which the kernel does not allow a process of another host. So mpirun runs on the login
// machine. As with ssh, the daemon does not get mpirun's variables.
Processes with_mpirun(const Cluster& cluster, const Argv& overrides) {
  const auto agent = cluster.folder() / "agent";
  std::ofstream script(agent);
  script << "#!/bin/sh\nhost=$1\nshift\ncase $host in\n";
  for (int host = 0; host < Cluster::kHosts; ++host) {
    script << name_of(host) << ") exec env -i PATH=\"$PATH\" TMPDIR=/dev/shm";
    for (const std::string& word : cluster.on(host)) script << " '" << word << "'";
    script << " sh -c \"$*\" ;;\n";
  }
  script << "esac\necho \"no host $host\" >&2\nexit 1\n";
  script.close();
  std::filesystem::permissions(agent, std::filesystem::perms::owner_all);

  Argv argv = cluster.on_login() + Argv{"mpirun", "--allow-run-as-root", "--bind-to", "none"} +
              Argv{"--host", "node0:2,node1:2,node2:2", "--wdir", cluster.disk().string()};
  for (const std::string& variable : kJobVariables) argv = argv + Argv{"-x", variable};
  argv = argv + Argv{"-x", "MASTER_ADDR=" + Cluster::kMaster, "-x", "MASTER_PORT=" + Cluster::kPort};
  Processes processes;
  processes.push_back(
      std::make_unique<Process>(argv + Cluster::training({}, overrides),
                                Argv{"TMPDIR=" + cluster.folder().string(), "OMPI_MCA_plm_rsh_agent=" + agent.string(),
                                     "OMPI_MCA_plm_rsh_no_tree_spawn=1", "OMPI_MCA_oob_tcp_if_include=eth0"}));
  return processes;
}

}  // namespace ddprun::e2e
