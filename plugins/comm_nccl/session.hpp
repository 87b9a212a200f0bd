// NCCL's communicator, from joining to leaving, and a thread that watches it: collectives run on the GPU while nobody
// waits for them, so a deadline, an abort and a peer's end have to be seen by somebody else. session.cpp is the
// caller's side, watch.cpp the thread's.
#pragma once

#include <nccl.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "device.hpp"
#include "host/liveness.hpp"
#include "inflight_op.hpp"

namespace ddprun::nccl_backend {

// Every use of the communicator is under one lock, and short, because it is a non-blocking one: it is asked until it
// has got on. Ending it takes it out first. So nobody waits for NCCL but the thread.
class Session {
 public:
  // Joins all ranks, which are at these places; at most host.deadline(). Throws CommError. Leaves when the result goes,
  // which waits neither for a peer nor for the GPU longer than a second: then it stays behind with its thread.
  static std::shared_ptr<Session> join(const Host& host, const Device& device, const std::vector<host::Place>& places,
                                       const ncclUniqueId& id);
  ~Session() = default;

  // Runs call(ncclComm_t), and waits until NCCL has taken it. `name` is of static storage. Throws CommError, the first
  // of this session, which is dead from then on.
  template <class Call>
  void run(const char* name, Call&& call) {
    settle(name, begin(name, std::forward<Call>(call)));
  }

  // A flight that nobody uses. Then the caller enters it, in the order of the stream, and releases it when it was
  // waited for.
  InflightOp& take();
  void enter(InflightOp& flight);
  void release(InflightOp& flight) noexcept;

  // Blocks until the GPU has come by the flight's end. Throws CommError.
  void wait_for(const InflightOp& flight, std::chrono::milliseconds timeout);

  // Memory that NCCL has made and registered. Throws CommError. free waits for the GPU, as cudaFree does.
  void* alloc(uint64_t bytes);
  void free(void* memory) noexcept;

  cudaStream_t stream() const noexcept { return stream_; }
  int32_t* word() const noexcept { return word_; }  // on the device, for the barrier: 0
  void throw_if_failed();
  // Ends the session: the thread aborts the communicator, by which the kernels of this rank end.
  [[noreturn]] void fail(const CommError& failure);
  void abort() noexcept;

 private:
  static constexpr char kIdle[] = "between two collectives";

  Session(const Host& host, const Device& device, const std::vector<host::Place>& places)
      : host_(host), device_(device), peers_(places, host.rank()) {}

  template <class Call>
  ncclResult_t begin(const char* name, Call&& call) {
    const std::lock_guard lock(mutex_);
    if (failure_) throw *failure_;
    doing_ = name;
    return call(comm_);
  }
  void settle(const char* name, ncclResult_t result);
  ncclResult_t progress();
  bool is_aborted() const noexcept { return aborted_.load(std::memory_order_acquire) || host_.aborted(); }
  void close() noexcept;

  // The thread's. `lock` holds mutex_, which end() and leave() give back meanwhile.
  using Lock = std::unique_lock<std::mutex>;
  void watch();
  std::optional<CommError> trouble(Clock::time_point now);
  std::optional<CommError> trouble_of_flights(Clock::time_point now);
  std::optional<CommError> trouble_of_peers(Clock::time_point now);
  void end(Lock& lock);
  void leave(Lock& lock);
  void free_everything() noexcept;

  const Host host_;
  const Device device_;
  const host::Liveness peers_;
  std::atomic<bool> aborted_{false};
  cudaStream_t stream_ = nullptr;
  int32_t* word_ = nullptr;

  std::mutex mutex_;  // what follows
  std::condition_variable changed_;
  ncclComm_t comm_ = nullptr;
  const char* doing_ = "joining";               // in NCCL, or kIdle
  std::optional<Clock::time_point> peer_gone_;  // since when one that is waited for has been
  std::optional<CommError> failure_;
  std::vector<std::unique_ptr<InflightOp>> flights_;
  std::vector<InflightOp*> free_;
  std::deque<InflightOp*> under_way_;  // in the order of our stream
  std::map<void*, void*> allocated_;   // with NCCL's handle
  bool closing_ = false;
  bool has_left_ = false;
  std::thread thread_;
};

}  // namespace ddprun::nccl_backend
