#include "cli/console/node_options.hpp"

#include <cstdlib>

#include "ddprun/error.hpp"
#include "launch/rendezvous.hpp"

namespace ddprun::console {
namespace {

constexpr int kDefaultPort = 29500;  // torchrun's

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ExitCode::usage, what);
}

}  // namespace

launch::Nodes nodes_of(const NodeOptions& options, bool insecure, std::chrono::milliseconds timeout) {
  launch::Nodes nodes;
  nodes.timeout = timeout;
  if (options.standalone && options.nnodes.value_or(1) > 1) refuse("--standalone is for one node; leave out --nnodes");
  nodes.count = options.nnodes.value_or(1);
  nodes.least = options.least;
  if (nodes.least > nodes.count) {
    refuse("--nnodes " + std::to_string(nodes.least) + ":" + std::to_string(nodes.count) +
           ": the first number is the least, and the second the number of hosts at the start");
  }
  if (nodes.count == 1) {
    if (!options.nnodes && (options.node_rank || options.master_port || !options.master_addr.empty())) {
      refuse(
          "--node-rank, --master-addr and --master-port are for several nodes: give --nnodes too, or leave them out");
    }
    return nodes;
  }
  if (!options.node_rank) {
    refuse("--node-rank is missing: --nnodes " + std::to_string(nodes.count) + " needs a number from 0 to " +
           std::to_string(nodes.count - 1) + ", another one on each node");
  }
  nodes.rank = *options.node_rank;
  if (nodes.rank >= nodes.count) {
    refuse("--node-rank " + std::to_string(nodes.rank) + ": expected a number below --nnodes " +
           std::to_string(nodes.count));
  }
  if (options.master_addr.empty()) refuse("--master-addr is missing: give the name or address of node 0");
  nodes.master = {options.master_addr, options.master_port.value_or(kDefaultPort),
                  launch::required_secret(options.master_addr, insecure || options.insecure)};
  return nodes;
}

launch::Job job_of(const NodeOptions& options, std::chrono::milliseconds timeout) {
  launch::Job job;
  job.nproc = options.nproc.value_or(1);
  job.max_restarts = options.max_restarts.value_or(0);
  job.nodes = nodes_of(options, options.insecure, timeout);
  return job;
}

std::optional<launch::World> discover(const NodeOptions& options, std::optional<int> nproc) {
  const bool is_rank = std::getenv("DDPRUN_RANK") != nullptr;  // of ddprun's launcher, whose arguments it has
  if (options.start_ranks() && !is_rank) return std::nullopt;
  return launch::discover(nproc);
}

}  // namespace ddprun::console
