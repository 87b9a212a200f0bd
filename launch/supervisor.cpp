#include "launch/supervisor.hpp"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <memory>

#include "launch/job_link.hpp"
#include "launch/net/address.hpp"
#include "launch/net/net_store.hpp"

namespace ddprun::launch {
namespace {

std::unique_ptr<JobLink> join_nodes(const Job& job) {
  const Nodes& nodes = job.nodes;
  NodeInfo info{host_name(), job.nproc};
  if (job.torchrun_variables && nodes.rank == 0) info.program_port = free_port(nodes.master_addr);
  if (nodes.count == 1) return std::make_unique<JobLink>(std::move(info));
  return std::make_unique<JobLink>(StoreAddress{nodes.master_addr, nodes.master_port, nodes.secret}, nodes.rank,
                                   nodes.count, info, nodes.timeout);
}

}  // namespace

ExitCode supervise(const Job& job) {
  if (job.nproc < 1) throw Error(ExitCode::usage, "launch.nproc must be at least 1");
  ::signal(SIGPIPE, SIG_IGN);  // for good: the last lines are written after Signals has ended
  const bool several = job.nodes.count > 1;
  std::unique_ptr<StoreServer> server;
  if (several && job.nodes.rank == 0) {
    server = std::make_unique<StoreServer>(listening_addresses(job.nodes.master_addr, job.nodes.secret.empty()),
                                           job.nodes.master_port, job.nodes.secret);
  }
  for (int restart = 0;; ++restart) {
    const auto link = join_nodes(job);
    restart = std::max(restart, link->starts());  // this launcher may have come later, for a node that was lost
    Verdict verdict;
    try {
      Job attempt = job;
      attempt.max_restarts -= restart;
      if (restart > 0 && job.before_restart) job.before_restart(attempt, restart);
      verdict = supervise_node(attempt, *link);
    } catch (const std::exception& error) {
      const auto* known = dynamic_cast<const Error*>(&error);
      link->fail(known != nullptr ? *known : Error(ExitCode::failure, error.what()));
      throw;
    }
    if (restart >= job.max_restarts || !verdict.may_restart()) return verdict.code;
    std::fprintf(stderr, "ddprun: restart %d of %d\n", restart + 1, job.max_restarts);
  }
}

}  // namespace ddprun::launch
