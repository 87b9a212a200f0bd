// comm_gloo: collectives over TCP with Gloo. This class picks the algorithm and turns Gloo's failures into statuses;
// mesh.hpp connects, algorithms.hpp moves the data, connection_watchdog.hpp ends waits that would hang.
#pragma once

#include <optional>

#include "algorithms.hpp"
#include "choice.hpp"
#include "ddprun/plugin/comm_plugin.hpp"
#include "mesh.hpp"

namespace ddprun::gloo_backend {

class GlooCommunicator final : public CommBackend {
 public:
  explicit GlooCommunicator(const Host& host);

  Work allreduce(const Collective& call) override;
  Work broadcast(const Collective& call) override;
  Work allgather(const Collective& call) override;
  Work reduce_scatter(const Collective& call) override;
  Work barrier() override;
  void abort() noexcept override;

 private:
  Algorithm algorithm_of(const Collective& call) const;
  // Runs body(Run) over the mesh, with a deadline. After a failure the mesh is closed.
  template <class Body>
  void over_mesh(const char* name, Body&& body);
  [[noreturn]] void fail(const char* name, CommStatus status, const std::string& why);

  const Host host_;
  const std::optional<Algorithm> asked_;  // empty: auto
  const Tuning tuning_;
  Mesh mesh_;
  Scratch arrived_, sums_;
  std::optional<CommError> failure_;  // the first one; the mesh is closed after it
  // By Algorithm.
  Request allreduce_[4] = {{{"ring", "tcp"}}, {{"tree", "tcp"}}, {{"halving_doubling", "tcp"}}, {{"doubling", "tcp"}}};
  Request broadcast_{{"tree", "tcp"}};
  Request ring_{{"ring", "tcp"}};
  Request dissemination_{{"dissemination", "tcp"}};
};

}  // namespace ddprun::gloo_backend
