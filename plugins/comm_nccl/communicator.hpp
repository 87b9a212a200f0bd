// comm_nccl: collectives over NCCL, ordered on the caller's stream by events. This class says which call of NCCL serves
// what; session.hpp keeps NCCL's communicator alive and watches it.
#pragma once

#include <memory>

#include "algorithms.hpp"
#include "ddprun/plugin/comm_plugin.hpp"
#include "device.hpp"
#include "report.hpp"
#include "session.hpp"
#include "settings.hpp"

namespace ddprun::nccl_backend {

class NcclCommunicator final : public Communicator {
 public:
  explicit NcclCommunicator(const Host& host);

  Request& allreduce(const ddprun_collective& call) override;
  Request& broadcast(const ddprun_collective& call) override;
  Request& allgather(const ddprun_collective& call) override;
  Request& reduce_scatter(const ddprun_collective& call) override;
  Request& barrier() override;
  void abort() noexcept override { session_->abort(); }

  bool test(Request& request) override;
  void wait(Request& request, std::chrono::milliseconds timeout) override;
  void* alloc(uint64_t bytes) override;
  void free(void* memory) noexcept override;

 private:
  std::shared_ptr<Session> joined() const;
  // Our stream waits for the caller's, then launch(comm, stream) is queued on it.
  template <class Launch>
  Request& start(const char* name, const char* algorithm, const ddprun_collective& call, Launch&& launch);
  template <class Launch>
  void queue(InflightOp& flight, Launch&& launch);

  const Host host_;
  const Settings settings_;
  const Device device_;
  Report report_;
  const std::shared_ptr<Session> session_;
  Request nothing_{"nccl", "nccl"};  // for a collective of no elements
};

}  // namespace ddprun::nccl_backend
