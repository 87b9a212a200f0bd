// How a job of six ranks is started on the cluster.
#pragma once

#include "e2e/cluster.hpp"

namespace ddprun::e2e {

// Each starts all processes of a job. `overrides` are keys of the config.
Processes with_own_launcher(const Cluster& cluster, const Argv& overrides, const std::string& nnodes = "3");
// One process per rank, with the variables of env://.
Processes with_variables(const Cluster& cluster, const Argv& overrides);
// One agent per host. `rendezvous`: torchrun's options.
bool has_torchrun();  // prints why not
Processes with_torchrun(const Cluster& cluster, const Argv& overrides, const Argv& rendezvous);
// One mpirun of Open MPI, or one mpiexec of MPICH, on the login machine.
Processes with_mpirun(const Cluster& cluster, const Argv& overrides);
bool has_mpich();  // prints why not
Processes with_mpich(const Cluster& cluster, const Argv& overrides);

}  // namespace ddprun::e2e
