// The ranks that train together.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ddprun/comm_backend.hpp"

namespace ddprun::comm {

// The ranks of a backend, and how long one collective may take. A value: copies are the same ranks. Also works for a
// training of one rank.
//
// One thread at a time. sum, gather, broadcast, from and barrier are collective. They and check throw as CommBackend
// does.
class Group {
 public:
  Group() = default;  // one rank, without a backend
  // `timeout` applies to each collective. The backend must outlive the group.
  Group(CommBackend& backend, std::chrono::milliseconds timeout) : backend_(&backend), timeout_(timeout) {}

  int rank() const { return backend_ == nullptr ? 0 : backend_->rank(); }
  int size() const { return backend_ == nullptr ? 1 : backend_->size(); }

  bool has_backend() const { return backend_ != nullptr; }
  CommBackend& backend() const { return *backend_; }  // only if has_backend()
  std::chrono::milliseconds timeout() const { return timeout_; }

  // Element by element over the ranks, added in rank order, so that the result is the same on all. `values` has `rows`
  // rows of equal length: all rows of all ranks are added, in order.
  std::vector<double> sum(const std::vector<double>& values, std::size_t rows = 1) const;
  // The values of all ranks, in rank order; as many on each rank. For double, int64_t and uint8_t.
  template <class Number>
  std::vector<Number> gather(const std::vector<Number>& mine) const {
    std::vector<Number> all(mine.size() * static_cast<std::size_t>(size()));
    allgather(mine.data(), mine.size(), dtype_of(Number()), all.data());
    return all;
  }
  // One text of each rank, in rank order, of any length.
  std::vector<std::string> gather(const std::string& mine) const;
  // Overwrites the bytes, as many on each rank, with those of rank `root`. Only if has_backend().
  void broadcast(void* data, std::size_t bytes, int root = 0) const;
  // The bytes of rank `root`, of any number. Only if has_backend().
  std::vector<char> from(int root, std::vector<char> bytes) const;
  // Returns when all ranks have called it.
  void barrier() const {
    if (backend_ != nullptr) backend_->barrier().wait(timeout_);
  }

  // Throws if the group has failed. The buffers of this rank may then hold the result of an aborted collective. Does
  // not communicate.
  void check() const {
    if (backend_ != nullptr) backend_->async_error();
  }

 private:
  static constexpr DType dtype_of(double) { return DType::float64; }
  static constexpr DType dtype_of(int64_t) { return DType::int64; }
  static constexpr DType dtype_of(uint8_t) { return DType::uint8; }
  void allgather(const void* mine, std::size_t count, DType dtype, void* all) const;

  CommBackend* backend_ = nullptr;
  std::chrono::milliseconds timeout_{0};
};

// Calls `work` and returns when all ranks have finished theirs. Collective; a rank without work passes an empty
// function. The ranks exchange a heartbeat several times within the timeout, so a slow disk is not an error. It becomes
// an error if a rank takes ten timeouts longer than the others. A separate thread sends the heartbeats through the
// backend, so `work` must not use the backend. A rank whose work takes longer than the timeout reports this once, with
// `doing`: "rank 0 has been saving a checkpoint for longer ...". Throws what `work` throws. Throws Error(peer), after
// `work` has returned, if a rank has ended, hangs outside its work, or takes too long.
void with_heartbeat(const Group& group, const std::string& doing, const std::function<void()>& work);
// The same, with work only on rank 0.
void with_heartbeat_on_rank0(const Group& group, const std::string& doing, const std::function<void()>& work);

}  // namespace ddprun::comm
