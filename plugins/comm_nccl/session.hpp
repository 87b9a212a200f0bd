// Owns NCCL's communicator, with a thread that watches it. Collectives run on the GPU while no thread waits for them,
// so the watch thread handles deadlines, aborts and the end of a peer. bootstrap.cpp is what ranks exchange before they
// create it, session.cpp the caller's side, watch.cpp the thread's.
#pragma once

#include <nccl.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "device.hpp"
#include "host/liveness.hpp"
#include "inflight_op.hpp"
#include "settings.hpp"

namespace ddprun::nccl_backend {

// Collective, before the first NCCL call: compares the hosts, GPUs and NCCL settings of all ranks. Returns whether all
// are in one network namespace. Throws CommError: CommStatus::invalid if two ranks share a GPU, CommStatus::mismatch if
// their NCCL versions or their way to force an algorithm differ.
bool compare_ranks(const Host& host, const Device& device, const Settings& settings, const std::string& forced);

// Collective: the id that rank 0 creates. Every rank throws if that fails.
ncclUniqueId exchange_id(const Host& host);

// Every use of the communicator is under one lock, and short, because the communicator is non-blocking: it is polled
// until it is ready. Before it is aborted, it is removed from the session. So only the thread waits for NCCL.
class Session {
 public:
  // Connects all ranks, which are these processes, within host.deadline(). Throws CommError. Dropping the result leaves
  // the group: it waits for peers and the GPU for at most a second; after that the session and its thread stay behind.
  static std::shared_ptr<Session> join(const Host& host, const Device& device,
                                       const std::vector<host::Process>& processes, const ncclUniqueId& id);

  // Runs call(ncclComm_t), and waits until NCCL has accepted it. `name` must have static storage. The first CommError
  // ends the session; all later calls throw it too.
  template <class Call>
  void run(const char* name, Call&& call) {
    finish_call(name, begin(name, std::forward<Call>(call)));
  }

  // Returns an unused request. The caller then enters it, in stream order, and releases it after waiting for it.
  InflightOp& acquire();
  void enter(InflightOp& op);
  void release(InflightOp& op) noexcept;

  // Blocks until the GPU has completed the collective. Throws CommError.
  void wait_for(const InflightOp& op, std::chrono::milliseconds timeout);

  // Memory that NCCL allocates and registers. Throws CommError. free waits for the GPU, as cudaFree does.
  void* alloc(uint64_t bytes);
  void free(void* memory) noexcept;

  cudaStream_t stream() const noexcept { return stream_; }
  int32_t* word() const noexcept { return word_; }  // on the device, for the barrier: 0
  void async_error();
  // Ends the session: the thread aborts the communicator, which ends this rank's kernels.
  [[noreturn]] void fail(const CommError& failure);
  void abort() noexcept;

 private:
  static constexpr char kIdle[] = "between two collectives";

  Session(const Host& host, const Device& device, const std::vector<host::Process>& processes)
      : host_(host), device_(device), peers_(processes, host.rank()) {}

  template <class Call>
  ncclResult_t begin(const char* name, Call&& call) {
    const std::lock_guard lock(mutex_);
    if (failure_) throw *failure_;
    doing_ = name;
    return call(comm_);
  }
  void finish_call(const char* name, ncclResult_t result);
  ncclResult_t progress();
  bool is_aborted() const noexcept { return aborted_.load(std::memory_order_acquire) || host_.aborted(); }
  void close() noexcept;

  // `lock` holds mutex_; all that take it may release it meanwhile.
  using Lock = std::unique_lock<std::mutex>;
  void watch();
  std::optional<CommError> trouble(Lock& lock, Clock::time_point now);
  std::optional<CommError> trouble_of_ops(Clock::time_point now);
  std::optional<CommError> trouble_of_peers(Clock::time_point now);
  CommError with_lost_rank(Lock& lock, const CommError& failure);
  void end(Lock& lock);
  void leave(Lock& lock);
  void free_everything() noexcept;

  const Host host_;
  const Device device_;
  const host::Liveness peers_;
  std::atomic<bool> aborted_{false};
  cudaStream_t stream_ = nullptr;
  int32_t* word_ = nullptr;

  std::mutex mutex_;  // guards all members below
  std::condition_variable changed_;
  ncclComm_t comm_ = nullptr;
  const char* doing_ = "joining";               // the current NCCL call, or kIdle
  std::optional<Clock::time_point> peer_gone_;  // when a peer that is waited for was first seen gone
  std::optional<CommError> failure_;
  std::vector<std::unique_ptr<InflightOp>> ops_;
  std::vector<InflightOp*> free_;
  std::deque<InflightOp*> inflight_;  // in the order of our stream
  std::map<void*, void*> allocated_;  // with NCCL's handle
  bool closing_ = false;
  bool has_left_ = false;
  std::thread thread_;
};

}  // namespace ddprun::nccl_backend
