// The launcher: starts the ranks of this host as child processes, forwards their output, and ends all when one fails.
// The launchers of several hosts form one job.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "ddprun/error.hpp"
#include "launch/net/secret.hpp"

namespace ddprun::launch {

// The nodes of a job: one launcher on each.
struct Nodes {
  int count = 1;
  int least = 0;  // so many nodes must be left for the job to survive the death of ranks and nodes; 0: it ends
  int rank = 0;   // of this node
  // Of node 0: a name or an address that all nodes can reach, and the secret of required_secret().
  StoreAddress master{"127.0.0.1", 0, {}};
  std::chrono::milliseconds timeout{30000};  // until all nodes are there, or `least` again

  bool survives() const { return least > 0; }
};

struct Job {
  // The ranks of the first start run it, as forks of the launcher, which must have one thread. It may be empty.
  std::function<int()> forked;
  // argv of the other ranks: those of a restart, and without `forked` all. command[0] is the program's path, or a name
  // on PATH.
  std::vector<std::string> command;
  std::vector<std::string> environment;  // further variables of the ranks: "NAME=value"
  bool torchrun_variables = false;       // ranks also get RANK, WORLD_SIZE, MASTER_ADDR, ...
  int nproc = 1;                         // ranks on this node; may differ between nodes
  Nodes nodes;
  // Called before each restart, with its number from 1; may change command and environment. May be empty.
  std::function<void(Job& job, int restart)> before_restart;
  // Called after all ranks have ended, if the job has failed and does not start again, or if a stop did not wait for
  // the ranks: a line to print before the first cause, or "". May be empty.
  std::function<std::string()> advice;
  int max_restarts = 0;  // the same on all nodes; with nodes.least: also how many ranks each node starts again
  std::string log_dir;   // for rank<N>.log with all output of a rank; "" for no logs
  std::chrono::milliseconds grace{30000};  // time between a signal to stop and the ranks' own exit
};

// Runs the job to its end and returns its exit code. Opens no socket if there is one node.
//  - Ranks have the environment DDPRUN_RANK, DDPRUN_WORLD_SIZE, DDPRUN_LOCAL_RANK, DDPRUN_LOCAL_WORLD_SIZE,
//    DDPRUN_JOB_DIR and, if the launcher's stderr is a terminal, DDPRUN_TTY (its columns). With torchrun_variables also
//    RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, GROUP_RANK, GROUP_WORLD_SIZE, MASTER_ADDR and MASTER_PORT: a port
//    of node 0 that was free.
//  - The first rank that fails (a signal, an exit code other than 0, a reported failure, or stopped for 2 s) ends the
//    job within half a second. The last line and the exit code are those of the first cause. With nodes.least, a death
//    by a signal after the first step is only reported, in one line and in the store (members_key()).
//  - First SIGINT, SIGTERM or SIGUSR1: the ranks finish a common step and save, for at most `grace`; before the first
//    step they end immediately. The exit code is 130 for SIGINT, otherwise 143. A second SIGINT or SIGTERM ends the job
//    immediately. If a rank stops the others because it received such a signal itself, the exit code is 143.
//    With torchrun_variables, the launcher passes the first signal on to the ranks instead (SIGTERM for SIGUSR1). A
//    rank that ends by it has not failed.
//  - The ranks get SIGUSR2 (signals.hpp) when the launcher gets it, and when a rank fails; the latter not with
//    torchrun_variables.
// Several nodes: the launcher of node 0 hosts the store in which nodes and ranks meet, at master_addr:master_port.
// Ranks are numbered by node rank, and get DDPRUN_STORE ("HOST:PORT"). Every launcher reports the same first cause and
// returns the same exit code. A node that is silent for 2.25 s is lost, which ends the job. A signal to one launcher
// stops the ranks of all. A lost node may come back for a restart: start its launcher again with the same arguments.
// With nodes.least the job goes on without a lost node, unless it is node 0, and the node may come back at any time. If
// fewer than `least` are left, the ranks wait for nodes.timeout; then they save as after SIGTERM, and the job has
// failed. SIGTERM or SIGUSR1 to the launcher of a node that can be spared only ends the ranks of this node, with exit
// code 143. After a failure (exit code 1 or 5) all ranks start again, up to max_restarts times. Call it on the main
// thread, before other threads exist: a child's PR_SET_PDEATHSIG watches the thread that spawned it, and the launcher
// forks. Throws Error(failure) if the ranks cannot be started, and Error(rendezvous) if the nodes do not meet.
ExitCode supervise(Job job);

}  // namespace ddprun::launch
