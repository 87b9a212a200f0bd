// comm_ucx: collectives over UCX. This class picks the algorithm and keeps the first failure; messages.hpp communicates
// with the peers, algorithms.hpp plans who sends what, pipeline.hpp runs the plan. The allreduce `hierarchical` reduces
// within each host in shared memory (plugins/lib/shm), and over UCX between the hosts.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

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
  // Collective. Null if no allreduce can be hierarchical.
  std::unique_ptr<shm::Group> make_node() const;
  // On one host, hierarchical is used only on request.
  bool has_several_hosts_and_shares_some() const noexcept;
  // Throws CommError for GPU memory if this rank has no GPU.
  MemorySpace& space_of(Memory memory);
  // Runs the steps that plan(schedule, space) writes. After a failure the messages are closed.
  template <class Plan>
  void run(const char* name, const Collective& call, Plan&& plan);
  // Runs body() on the host's shared memory. A failure other than CommStatus::no_memory closes it and the messages.
  template <class Body>
  void run_on_node(const char* name, Body&& body);
  // Reduces within each host, then between the first ranks of the hosts; then spreads the result within each host.
  void hierarchical_allreduce(const Collective& call);
  // `name`: of the collective.
  [[noreturn]] void fail(CommStatus status, int cause, const std::string& why, const char* name);
  bool is_alone() const noexcept { return group_.size == 1; }

  const Host host_;
  const Group group_;
  const std::optional<Algorithm> asked_;  // empty: auto
  const std::unique_ptr<const Gpu> gpu_;  // null: this rank has none
  Messages messages_;
  const std::vector<int> leaders_;          // the first rank of each host, ascending
  const std::unique_ptr<shm::Group> node_;  // the ranks of this host; null: nothing is hierarchical
  const Choice choice_;
  shm::Allocations own_memory_{1, 0};  // if there is no node
  HostSpace host_space_;
  std::unique_ptr<MemorySpace> gpu_space_;
  Pipeline pipeline_;
  Schedule schedule_;                 // memory for the call's steps
  std::optional<CommError> failure_;  // the first one; messages are closed after it
  std::string node_transports_;
  Request ring_{}, tree_{}, hierarchical_{}, pairwise_{}, dissemination_{};
};

}  // namespace ddprun::ucx_backend
