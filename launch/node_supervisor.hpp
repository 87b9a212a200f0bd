// The supervision of one node's ranks, from their start to their end. supervisor.hpp is the interface for other
// modules.
#pragma once

#include <string>

#include "launch/peers.hpp"
#include "launch/supervisor.hpp"

namespace ddprun::launch {

// How the job ended.
struct Verdict {
  ExitCode code = ExitCode::ok;
  std::string text;      // the last line of the launcher; "" after a success
  bool stopped = false;  // a signal ended the job

  // Other failures would come again: of the config, a plugin or the rendezvous. A stop is no failure.
  bool may_restart() const { return !stopped && (code == ExitCode::failure || code == ExitCode::peer); }
};

// Runs the ranks once, prints the verdict and returns it. job.max_restarts: those that are left. peers: null if there
// is one node. Throws as supervise().
Verdict supervise_node(const Job& job, Peers* peers);

}  // namespace ddprun::launch
