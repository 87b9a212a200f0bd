// RankGroup: what the training loop needs of the other ranks, and the same for a training of one rank.
#pragma once

#include <torch/torch.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "ddprun/comm_backend.hpp"

namespace ddprun::train {

// Training thread only. All functions but rank, size and async_error are collective, and throw as CommBackend does.
class RankGroup {
 public:
  RankGroup() = default;  // one rank, which waits for nobody
  // `timeout`: of each collective. The backend must outlive the group.
  RankGroup(CommBackend& backend, std::chrono::milliseconds timeout) : backend_(&backend), timeout_(timeout) {}

  int rank() const { return backend_ == nullptr ? 0 : backend_->rank(); }
  int size() const { return backend_ == nullptr ? 1 : backend_->size(); }

  // Of a group that was made with a backend.
  CommBackend& backend() const { return *backend_; }
  std::chrono::milliseconds timeout() const { return timeout_; }

  // Element by element over the ranks; every rank's value in rank order.
  std::vector<double> sum(const std::vector<double>& values) const;
  std::vector<double> gather(double value) const;
  void barrier() const;
  // Calls work() and returns when all ranks have done so. A rank without work gives an empty function. The others wait
  // for as long as the work takes (heartbeat_barrier.hpp). `doing` stands in messages: "rank 1 has been <doing>".
  void heartbeat_barrier(const std::string& doing, const std::function<void()>& work) const;
  // The same, with the work on rank 0 alone.
  void heartbeat_barrier_of_rank0(const std::string& doing, const std::function<void()>& work) const;

  // Throws where the group has failed, so that this rank may hold what an aborted collective left. Asks no other rank.
  void async_error() const;
  // Waits on the host until a GPU has passed `end`, at most the timeout: then the group is aborted, with Error(peer).
  // The backend, which bounds the wait for each collective that it is given, does not see one that a CUDA graph
  // replays.
  void wait_for_replay(const c10::Event& end) const;

 private:
  bool is_over(const c10::Event& event) const;
  std::vector<double> gather_all(const std::vector<double>& mine) const;

  CommBackend* backend_ = nullptr;
  std::chrono::milliseconds timeout_{0};
};

}  // namespace ddprun::train
