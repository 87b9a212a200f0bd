// The options of a command that starts ranks, with torchrun's names. A program's main.cpp declares them with
// add_node_options() (command_line.hpp).
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "launch/supervisor.hpp"
#include "launch/world.hpp"

namespace ddprun::console {

struct NodeOptions {
  std::optional<int> nnodes;
  int least = 0;  // --nnodes LEAST:N, as launch::Nodes::least
  std::optional<int> node_rank;
  std::string master_addr;
  std::optional<int> master_port;
  std::optional<int> nproc;
  std::optional<int> max_restarts;
  bool standalone = false;  // start the ranks here, even if variables of a launcher are set
  bool insecure = false;

  // Whether this process must start ranks itself: nodes or --standalone are given.
  bool start_ranks() const { return nnodes.has_value() || standalone; }
};

// The nodes of the job; `insecure`: launch.insecure of a config. Throws Error(usage) for options that do not fit
// together, and Error(rendezvous) without a secret that is needed.
launch::Nodes nodes_of(const NodeOptions& options, bool insecure, std::chrono::milliseconds timeout);

// A job of these options, without a command; --nproc-per-node is 1 unless it is given. Throws as nodes_of().
launch::Job job_of(const NodeOptions& options, std::chrono::milliseconds timeout);

// As launch::discover(), for a command with these options: nothing if this process must start the ranks itself.
std::optional<launch::World> discover(const NodeOptions& options, std::optional<int> nproc);

}  // namespace ddprun::console
