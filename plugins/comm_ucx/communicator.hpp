// comm_ucx: collectives over UCX. This class picks the algorithm and keeps the first failure; messages.hpp talks to the
// peers, algorithms.hpp says who sends what, pipeline.hpp does it; shared_group.hpp reduces between ranks of one host.
// Vectors in a GPU's memory (gpu_space.hpp) go by messages always.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "algorithms.hpp"
#include "choice.hpp"
#include "ddprun/plugin/comm_plugin.hpp"
#include "gpu.hpp"
#include "host_space.hpp"
#include "messages.hpp"
#include "pipeline.hpp"
#include "shared_group.hpp"

namespace ddprun::ucx_backend {

class UcxCommunicator final : public Communicator {
 public:
  explicit UcxCommunicator(const Host& host);
  ~UcxCommunicator() override;

  Request& allreduce(const ddprun_collective& call) override;
  Request& broadcast(const ddprun_collective& call) override;
  Request& allgather(const ddprun_collective& call) override;
  Request& reduce_scatter(const ddprun_collective& call) override;
  Request& barrier() override;
  void abort() noexcept override;
  void* alloc(uint64_t bytes) override;
  void free(void* memory) noexcept override;

 private:
  // How an allreduce goes: the same on all ranks.
  Way way_of(const ddprun_collective& call) const;
  // Whether vectors of the host need UCX at all: not where every collective goes through the memory of one host.
  bool needs_messages() const;
  bool goes_by_messages(const ddprun_collective& call) const noexcept {
    return has_messages_ || call.memory == DDPRUN_CUDA;
  }
  // Throws Failure for memory of a GPU where this rank has none.
  MemorySpace& space_of(int32_t memory);
  // Runs the steps that plan(schedule, space) writes. After a failure the messages are closed.
  template <class Plan>
  void run(const char* name, const ddprun_collective& call, Plan&& plan);
  // Runs body() on the shared memory. After a failure, but for want of memory, it and the messages are closed.
  template <class Body>
  void run_shared(Body&& body);
  // Within each host, between their leaders, within each host again.
  void shared_allreduce(const ddprun_collective& call);
  [[noreturn]] void fail(ddprun_status status, int cause, const std::string& why);
  bool is_alone() const noexcept { return group_.size == 1; }

  const Host host_;
  const Group group_;
  const std::unique_ptr<const Gpu> gpu_;  // null: this rank has none
  Messages messages_;
  SharedGroup shared_;
  const Choice choice_;
  HostSpace host_space_;
  std::unique_ptr<MemorySpace> gpu_space_;
  Pipeline pipeline_;
  Schedule schedule_;               // memory for the call's steps
  std::optional<Failure> failure_;  // the first: its messages are closed
  bool has_messages_ = false;       // else all ranks share memory, and nothing of the host's goes any other way
  std::string shared_transports_;
  Request ring_{}, tree_{}, shared_request_{}, pairwise_{}, dissemination_{};
};

}  // namespace ddprun::ucx_backend
