// comm_ucx: collectives over UCX. This class picks the algorithm and keeps the first failure; messages.hpp communicates
// with the peers, algorithms.hpp plans who sends what, pipeline.hpp runs the plan. The allreduce `hierarchical` reduces
// within each host in shared memory, and over UCX between the hosts (plugins/lib/shm/hierarchy.hpp).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "algorithms.hpp"
#include "choice.hpp"
#include "ddprun/plugin/comm_plugin.hpp"
#include "gpu.hpp"
#include "memory_space.hpp"
#include "messages.hpp"
#include "pipeline.hpp"
#include "shm/hierarchy.hpp"

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
  Work exchange(const Exchange& call) override;
  void abort() noexcept override;
  std::shared_ptr<void> allocate(std::size_t bytes) override;

 private:
  // Throws CommError for GPU memory if this rank has no GPU.
  MemorySpace& space_of(Memory memory);
  // Runs the steps that plan(schedule, space) writes. After a failure the messages are closed.
  template <class Plan>
  void run(const char* name, const Collective& call, Plan&& plan);
  // The same, without handling a failure.
  template <class Plan>
  void try_to_run(const char* name, const Collective& call, MemorySpace& space, Plan&& plan);
  // Handles the exception in flight, a failure of the messages.
  [[noreturn]] void fail_over_ucx(const char* name);
  // Handles a failure in the host's shared memory. After CommStatus::no_memory, all ranks of the host can continue.
  [[noreturn]] void fail_on_node(const CommError& failure, const char* name);
  void hierarchical_allreduce(const Collective& call);
  // `name`: of the collective.
  [[noreturn]] void fail(CommStatus status, int cause, const std::string& why, const char* name);
  Request& done(Algorithm algorithm) { return by_algorithm_[static_cast<std::size_t>(algorithm)]; }
  bool is_alone() const noexcept { return group_.size == 1; }

  const Host host_;
  const Group group_;
  const std::optional<Algorithm> asked_;  // empty: auto
  const std::unique_ptr<const Gpu> gpu_;  // null: this rank has none
  Messages messages_;
  const int hosts_;
  const std::unique_ptr<shm::Hierarchy> hierarchy_;  // null: nothing is hierarchical
  const Choice choice_;
  shm::Allocations own_memory_{1, 0};  // if nothing is hierarchical
  HostSpace host_space_;
  std::unique_ptr<MemorySpace> gpu_space_;
  Pipeline pipeline_;
  Schedule schedule_;                 // memory for the call's steps
  std::optional<CommError> failure_;  // the first one; messages are closed after it
  std::string node_transports_;
  Request by_algorithm_[std::size(kAlgorithms)]{}, pairwise_{}, dissemination_{};
};

}  // namespace ddprun::ucx_backend
