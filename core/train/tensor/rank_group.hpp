// The operations between ranks that a training needs.
#pragma once

#include <torch/torch.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "ddprun/comm_backend.hpp"
#include "train/tensor/parameters.hpp"

namespace ddprun::train {

// Also works for a training of one rank.
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
  // as long as the work takes (run_with_heartbeat). `doing` completes the message "rank 1 has been <doing>".
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

// Calls `work` and returns when all ranks have finished theirs. Collective; a rank without work passes an empty
// function. The ranks exchange a heartbeat several times within `timeout`, so a slow disk is not an error. It becomes
// an error if a rank takes ten timeouts longer than the others. A separate thread sends the heartbeats through the
// backend, so `work` must not use the backend. A rank whose work takes longer than `timeout` reports this once: "rank 0
// has been saving a checkpoint for longer ...". Throws what `work` throws. Throws Error(peer), after `work` has
// returned, if a rank has ended, hangs outside its work, or takes too long.
void run_with_heartbeat(CommBackend& backend, std::chrono::milliseconds timeout, const std::string& doing,
                        const std::function<void()>& work);

// Overwrites the tensors, of any dtype, with those of rank `root`, with one collective per dtype. Collective; throws as
// CommBackend does.
void broadcast_tensors(CommBackend& backend, const std::vector<NamedTensor>& tensors, std::chrono::milliseconds timeout,
                       int root = 0);

// Compares every tensor over the ranks by a 64-bit hash of its bytes. Collective. If they differ, throws Error(peer) on
// every rank that names the first such tensor and the ranks.
void compare_tensors(CommBackend& backend, const std::vector<NamedTensor>& tensors, int64_t step,
                     std::chrono::milliseconds timeout);

}  // namespace ddprun::train
