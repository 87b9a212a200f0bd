// comm_shm: the collectives of ranks of one host, in memory that all of them map. plugins/lib/shm has the protocol.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "ddprun/plugin/comm_plugin.hpp"
#include "host/liveness.hpp"
#include "shm/group.hpp"

namespace ddprun::shm_backend {

class ShmCommunicator final : public CommBackend {
 public:
  explicit ShmCommunicator(const Host& host);

  Work allreduce(const Collective& call) override;
  Work broadcast(const Collective& call) override;
  Work allgather(const Collective& call) override;
  Work reduce_scatter(const Collective& call) override;
  Work barrier() override;
  Work exchange(const Exchange& call) override;
  void abort() noexcept override { group_.abort(); }
  std::shared_ptr<void> allocate(std::size_t bytes) override;

 private:
  // Runs body(collectives, waiter) as a collective that `by` has carried out, and keeps a failure after which the ranks
  // cannot continue.
  template <class Body>
  Work run(const char* name, Request& by, const Body& body);

  const shm::Algorithm algorithm_;  // the requested one
  shm::Group group_;
  std::optional<CommError> failure_;  // the first
  Request direct_{{"direct", "memory"}};
  Request staged_{{"staged", "memory"}};
  Request pairwise_{{"pairwise", "memory"}};
};

}  // namespace ddprun::shm_backend
