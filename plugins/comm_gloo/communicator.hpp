// comm_gloo: collectives over TCP with Gloo. This class picks the algorithm and turns Gloo's failures into statuses;
// mesh.hpp connects, algorithms.hpp moves the data, connection_watchdog.hpp ends what would hang.
#pragma once

#include <optional>

#include "algorithms.hpp"
#include "choice.hpp"
#include "ddprun/plugin/comm_plugin.hpp"
#include "mesh.hpp"

namespace ddprun::gloo_backend {

class GlooCommunicator final : public Communicator {
 public:
  explicit GlooCommunicator(const Host& host);

  Request& allreduce(const ddprun_collective& call) override;
  Request& broadcast(const ddprun_collective& call) override;
  Request& allgather(const ddprun_collective& call) override;
  Request& reduce_scatter(const ddprun_collective& call) override;
  Request& barrier() override;
  void abort() noexcept override;

 private:
  // An algorithm for allreduce, and what it answers with.
  struct Way {
    void (*run)(const Run&, const ddprun_collective&);
    Request& served;
  };
  Way way_of(const std::string& algorithm);

  // Runs body(Run) over the mesh, with a deadline and a tag. After a failure the mesh is closed.
  template <class Body>
  void over_mesh(const char* name, Body&& body);
  [[noreturn]] void fail(const char* name, ddprun_status status, const std::string& why);

  const Host host_;
  const Tuning tuning_;
  Mesh mesh_;
  Scratch scratch_;
  uint32_t tag_ = 0;
  std::optional<Failure> failure_;  // the first: its mesh is closed
  Request ring_{"ring", "tcp"};
  Request tree_{"tree", "tcp"};
  Request halving_doubling_{"halving_doubling", "tcp"};
  Request dissemination_{"dissemination", "tcp"};
};

}  // namespace ddprun::gloo_backend
