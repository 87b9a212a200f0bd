// comm_nccl: collectives over NCCL, ordered on the caller's stream by events. This class maps each collective to an
// NCCL call; session.hpp owns and watches NCCL's communicator.
#pragma once

#include <memory>

#include "algorithms.hpp"
#include "ddprun/plugin/comm_plugin.hpp"
#include "device.hpp"
#include "session.hpp"
#include "settings.hpp"

namespace ddprun::nccl_backend {

class NcclCommunicator final : public CommBackend {
 public:
  explicit NcclCommunicator(const Host& host);

  Work allreduce(const Collective& call) override;
  Work broadcast(const Collective& call) override;
  Work allgather(const Collective& call) override;
  Work reduce_scatter(const Collective& call) override;
  Work barrier() override;
  Work exchange(const Exchange& call) override;
  void abort() noexcept override { session_->abort(); }

  bool test(Request& request) override;
  ExecutionInfo wait(Request& request, std::chrono::milliseconds timeout) override;
  void async_error() override { session_->async_error(); }
  std::shared_ptr<void> allocate(std::size_t bytes) override;

 private:
  std::shared_ptr<Session> joined() const;
  // Our stream waits for the caller's stream, then launch(comm, stream) is queued on it.
  template <class Launch>
  Work start(const char* name, Algorithm algorithm, const Collective& call, Launch&& launch);
  template <class Launch>
  void queue(InflightOp& op, Launch&& launch);

  const Host host_;
  const Algorithm algorithm_;
  const Settings settings_;
  const Device device_;
  const std::shared_ptr<Session> session_;
  Request nothing_{"nccl", "nccl"};  // for a collective of no elements
};

}  // namespace ddprun::nccl_backend
