// comm_gloo: collectives over TCP with Gloo. This class picks the algorithm and turns Gloo's failures into statuses;
// mesh.hpp connects, algorithms.hpp moves the data, connection_watchdog.hpp ends waits that would hang. The allreduce
// `hierarchical` reduces within each host in shared memory, and over Gloo between the hosts (plugins/lib/shm).
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "algorithms.hpp"
#include "choice.hpp"
#include "ddprun/plugin/comm_plugin.hpp"
#include "host/liveness.hpp"
#include "mesh.hpp"
#include "shm/hierarchy.hpp"

namespace ddprun::gloo_backend {

class GlooCommunicator final : public CommBackend {
 public:
  explicit GlooCommunicator(const Host& host) : GlooCommunicator(host, host::processes_of(host)) {}

  Work allreduce(const Collective& call) override;
  Work broadcast(const Collective& call) override;
  Work allgather(const Collective& call) override;
  Work reduce_scatter(const Collective& call) override;
  Work barrier() override;
  Work exchange(const Exchange& call) override;
  void abort() noexcept override;

 private:
  // processes: of all ranks.
  GlooCommunicator(const Host& host, const std::vector<host::Process>& processes);
  Algorithm algorithm_of(const Collective& call) const;
  // For a collective of all ranks.
  Run all_ranks() { return {mesh_, arrived_, sums_, host_.rank(), host_.size(), host_.size(), {}}; }
  void allreduce_over_mesh(const Run& run, Algorithm algorithm, const Collective& call);
  void hierarchical_allreduce(const Collective& call);
  // Runs body() over the mesh, with a deadline. After a failure the mesh is closed.
  template <class Body>
  void over_mesh(const char* name, Body&& body);
  // Handles the exception in flight, a failure of the mesh.
  [[noreturn]] void fail_over_mesh(const char* name);
  // Fails with peer_lost if hosts no longer answer.
  void fail_if_silent(const char* name);
  // cause: the rank that the failure is about; -1: this one.
  [[noreturn]] void fail(const char* name, CommStatus status, const std::string& why, int cause = -1);
  [[noreturn]] void fail(const CommError& error, int cause);

  const Host host_;
  const std::optional<Algorithm> asked_;             // empty: auto
  const std::unique_ptr<shm::Hierarchy> hierarchy_;  // null: nothing is hierarchical
  const Tuning tuning_;
  Mesh mesh_;
  Scratch arrived_, sums_;
  std::optional<CommError> failure_;  // the first one; the mesh is closed after it
  // By Algorithm.
  Request allreduce_[kAlgorithmCount] = {{{"ring", "tcp"}},
                                         {{"tree", "tcp"}},
                                         {{"halving_doubling", "tcp"}},
                                         {{"doubling", "tcp"}},
                                         {{"hierarchical", "memory,tcp"}}};
  Request broadcast_{{"tree", "tcp"}};
  Request ring_{{"ring", "tcp"}};
  Request dissemination_{{"dissemination", "tcp"}};
  Request pairwise_{{"pairwise", "tcp"}};
};

}  // namespace ddprun::gloo_backend
