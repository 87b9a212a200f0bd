// A backend that forwards everything to another one. Tests derive from it.
#pragma once

#include "comm/call.hpp"

namespace ddprun::testing {

class ForwardingBackend : public CommBackend {
 public:
  // `inner` must outlive it.
  explicit ForwardingBackend(CommBackend& inner)
      : CommBackend(inner.rank(), inner.size(), inner.name(), inner.capabilities()), inner_(inner) {}

  Work allreduce(const Collective& call) final { return start(comm::Kind::allreduce, call); }
  Work broadcast(const Collective& call) final { return start(comm::Kind::broadcast, call); }
  Work allgather(const Collective& call) final { return start(comm::Kind::allgather, call); }
  Work reduce_scatter(const Collective& call) final { return start(comm::Kind::reduce_scatter, call); }
  Work barrier() final { return start(comm::Kind::barrier, {}); }
  void async_error() override { inner_.async_error(); }
  void abort() noexcept override { inner_.abort(); }
  std::shared_ptr<void> allocate(std::size_t bytes) override { return inner_.allocate(bytes); }

 protected:
  virtual Work start(comm::Kind kind, const Collective& call) { return comm::start(inner_, kind, call); }

 private:
  CommBackend& inner_;
};

}  // namespace ddprun::testing
