// comm_ucx: collectives over UCX. This class picks the algorithm and keeps the first failure; messages.hpp talks to the
// peers, algorithms.hpp says who sends what, pipeline.hpp does it; plugins/lib/shm reduces between ranks of one host.
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
#include "shm/group.hpp"

namespace ddprun::ucx_backend {

class UcxCommunicator final : public CommBackend {
 public:
  explicit UcxCommunicator(const Host& host);
  ~UcxCommunicator() override;

  Work allreduce(const Collective& call) override;
  Work broadcast(const Collective& call) override;
  Work allgather(const Collective& call) override;
  Work reduce_scatter(const Collective& call) override;
  Work barrier() override;
  void abort() noexcept override;
  std::shared_ptr<void> allocate(std::size_t bytes) override;

 private:
  // How an allreduce goes: the same on all ranks.
  Algorithm algorithm_of(const Collective& call) const;
  // Whether vectors of the host need UCX at all: not where every collective goes through the memory of one host.
  bool needs_messages() const;
  bool goes_by_messages(const Collective& call) const noexcept {
    return has_messages_ || call.memory == Memory::cuda;
  }
  // Throws CommError for memory of a GPU where this rank has none.
  MemorySpace& space_of(Memory memory);
  // Runs the steps that plan(schedule, space) writes. After a failure the messages are closed.
  template <class Plan>
  void run(const char* name, const Collective& call, Plan&& plan);
  // Runs body() on the shared memory. After a failure, but for want of memory, it and the messages are closed.
  template <class Body>
  void run_shared(Body&& body);
  // Within each host, between their leaders, within each host again.
  void shared_allreduce(const Collective& call);
  [[noreturn]] void fail(CommStatus status, int cause, const std::string& why);
  bool is_alone() const noexcept { return group_.size == 1; }

  const Host host_;
  const Group group_;
  const std::unique_ptr<const Gpu> gpu_;  // null: this rank has none
  Messages messages_;
  const std::vector<int> leaders_;  // the first rank of each host, ascending
  shm::Group shared_;
  const Choice choice_;
  HostSpace host_space_;
  std::unique_ptr<MemorySpace> gpu_space_;
  Pipeline pipeline_;
  Schedule schedule_;               // memory for the call's steps
  std::optional<CommError> failure_;  // the first: its messages are closed
  bool has_messages_ = false;       // else all ranks share memory, and nothing of the host's goes any other way
  std::string shared_transports_;
  Request ring_{}, tree_{}, shared_request_{}, pairwise_{}, dissemination_{};
};

}  // namespace ddprun::ucx_backend
