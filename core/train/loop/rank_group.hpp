// RankGroup: the operations between ranks that the training loop needs. Also works for a training of one rank.
#pragma once

#include <torch/torch.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "ddprun/comm_backend.hpp"

namespace ddprun::train {

// Training thread only. All functions but rank, size and async_error are collective. They throw as CommBackend does.
class RankGroup {
 public:
  RankGroup() = default;  // a group of one rank, without a backend
  // `timeout` applies to each collective. The backend must outlive the group.
  RankGroup(CommBackend& backend, std::chrono::milliseconds timeout) : backend_(&backend), timeout_(timeout) {}

  int rank() const { return backend_ == nullptr ? 0 : backend_->rank(); }
  int size() const { return backend_ == nullptr ? 1 : backend_->size(); }

  // Only for a group that was constructed with a backend.
  CommBackend& backend() const { return *backend_; }
  std::chrono::milliseconds timeout() const { return timeout_; }

  // sum: element by element over the ranks. gather: every rank's value in rank order.
  std::vector<double> sum(const std::vector<double>& values) const;
  std::vector<double> gather(double value) const;
  void barrier() const;
  // Calls work() and returns when all ranks have done so. A rank without work passes an empty function. The others wait
  // as long as the work takes (heartbeat_barrier.hpp). `doing` completes the message "rank 1 has been <doing>".
  void heartbeat_barrier(const std::string& doing, const std::function<void()>& work) const;
  // The same, with work only on rank 0.
  void heartbeat_barrier_of_rank0(const std::string& doing, const std::function<void()>& work) const;

  // Throws if the group has failed. The tensors of this rank may then hold the result of an aborted collective. Does
  // not communicate.
  void async_error() const;
  // Waits on the host until a GPU has passed `end`. After the timeout it aborts the group and throws Error(peer). The
  // backend cannot do this: it does not see the collectives that a CUDA graph replays.
  void wait_for_replay(const c10::Event& end) const;

 private:
  bool is_over(const c10::Event& event) const;
  std::vector<double> gather_all(const std::vector<double>& mine) const;

  CommBackend* backend_ = nullptr;
  std::chrono::milliseconds timeout_{0};
};

}  // namespace ddprun::train
