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
  // Runs body(Run) over the mesh, with a deadline and a tag. After a failure the mesh is closed.
  template <class Body>
  void over_mesh(const char* name, Body&& body);
  [[noreturn]] void fail(const char* name, CommStatus status, const std::string& why);

  const Host host_;
  const std::optional<Algorithm> asked_;  // empty: auto
  const Tuning tuning_;
  Mesh mesh_;
  Scratch scratch_;
  uint32_t tag_ = 0;
  std::optional<CommError> failure_;  // the first one; the mesh is closed after it
  Request ring_{{"ring", "tcp"}};
  Request tree_{{"tree", "tcp"}};
  Request halving_doubling_{{"halving_doubling", "tcp"}};
  Request dissemination_{{"dissemination", "tcp"}};
};

}  // namespace ddprun::gloo_backend
