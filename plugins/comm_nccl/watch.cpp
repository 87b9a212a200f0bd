#include "session.hpp"

namespace ddprun::nccl_backend {
namespace {

using namespace std::chrono_literals;

constexpr auto kLook = 10ms;   // polling interval: the minimum delay until an error is noticed
constexpr auto kLeaving = 1s;  // for collectives in flight, and for NCCL to disconnect from its peers
// Wait after the end of a peer, so that the data that it sent can arrive: a rank that has its result may leave before
// others have theirs.
constexpr auto kFarewell = 500ms;
// Between the end of a process's connections and its own end: the driver first frees what the process has on the GPU.
constexpr auto kEnding = 1s;

}  // namespace

void Session::watch() {
  cudaSetDevice(device_.ordinal);  // permanently: resetting it would create a context on the first GPU
  Lock lock(mutex_);
  while (!closing_) {
    changed_.wait_for(lock, kLook);
    if (comm_ == nullptr) continue;
    if (!failure_) {
      const auto found = trouble(lock, Clock::now());
      if (!failure_) failure_ = found;
    }
    if (failure_) end(lock);
  }
  leave(lock);
  free_everything();
  has_left_ = true;
  changed_.notify_all();
}

std::optional<CommError> Session::trouble(Lock& lock, Clock::time_point now) {
  if (is_aborted()) return CommError(CommStatus::aborted, std::string(doing_) + ": aborted");
  ncclResult_t state = ncclSuccess;
  const ncclResult_t result = ncclCommGetAsyncError(comm_, &state);
  if (result != ncclSuccess) state = result;
  if (state != ncclSuccess && state != ncclInProgress) {
    return with_lost_rank(
        lock, failure_of(inflight_.empty() ? doing_ : inflight_.front()->name, state, ncclGetLastError(comm_)));
  }
  if (auto error = trouble_of_ops(now)) return error;
  return trouble_of_peers(now);
}

// The deadline of a collective counts from when the GPU has reached it: the collective before it and the caller's
// earlier work have ended.
std::optional<CommError> Session::trouble_of_ops(Clock::time_point now) {
  while (!inflight_.empty()) {
    InflightOp& op = *inflight_.front();
    const cudaError_t state = op.done.state();
    if (state == cudaErrorNotReady) {
      if (!op.begun && (op.is_barrier || op.ready.state() == cudaSuccess)) op.begun = now;
      if (op.begun && now - *op.begun > host_.deadline()) return timeout_of(op.name, host_.deadline());
      return std::nullopt;
    }
    if (state != cudaSuccess) return failure_of(op.name, state);
    op.has_ended = true;
    if (op.is_waited) free_.push_back(&op);
    inflight_.pop_front();
  }
  return std::nullopt;
}

// NCCL notices the end of a peer only through its sockets. A kernel that accesses the peer's memory, and a rank that
// waits for the peer to connect in the first collective, would wait until the deadline.
std::optional<CommError> Session::trouble_of_peers(Clock::time_point now) {
  const bool in_nccl = doing_ != kIdle;
  const bool on_gpu = !inflight_.empty() && inflight_.front()->begun;
  const int gone = in_nccl || on_gpu ? peers_.first_ended() : -1;
  if (gone < 0) {
    peer_gone_.reset();
    return std::nullopt;
  }
  if (!peer_gone_) peer_gone_ = now;
  if (now - *peer_gone_ < kFarewell) return std::nullopt;
  const char* const name = in_nccl ? doing_ : inflight_.front()->name;
  return CommError(CommStatus::peer_lost, std::string(name) + ": rank " + std::to_string(gone) + " has ended");
}

// NCCL does not name the peer whose connection has ended. A rank of this host is known to have ended.
CommError Session::with_lost_rank(Lock& lock, const CommError& failure) {
  if (failure.status() != CommStatus::peer_lost || !peers_.watches_any()) return failure;
  const auto limit = Clock::now() + kEnding;
  int gone = -1;
  while ((gone = peers_.first_ended()) < 0 && Clock::now() < limit && !failure_ && !closing_ && !is_aborted()) {
    changed_.wait_for(lock, 1ms);
  }
  if (gone < 0) return failure;
  return {CommStatus::peer_lost, std::string(failure.what()) + "; rank " + std::to_string(gone) + " has ended"};
}

// This ends the kernels of this rank, whatever its peers do, so threads that wait for the stream continue.
void Session::end(Lock& lock) {
  const ncclComm_t comm = std::exchange(comm_, nullptr);
  lock.unlock();
  ncclCommAbort(comm);
  lock.lock();
}

// A healthy communicator is flushed first: NCCL's own threads may still be sending data of our kernels.
void Session::leave(Lock& lock) {
  const auto limit = Clock::now() + kLeaving;
  while (comm_ != nullptr && !failure_ && !inflight_.empty() && Clock::now() < limit) {
    changed_.wait_for(lock, 1ms);
    failure_ = trouble(lock, Clock::now());
  }
  if (comm_ == nullptr) return;
  if (failure_ || !inflight_.empty()) return end(lock);

  const ncclComm_t comm = std::exchange(comm_, nullptr);
  lock.unlock();
  ncclResult_t state = ncclCommFinalize(comm);
  while (state == ncclInProgress && Clock::now() < limit && !is_aborted()) {
    std::this_thread::sleep_for(100us);
    if (ncclCommGetAsyncError(comm, &state) != ncclSuccess) break;
  }
  state == ncclSuccess ? ncclCommDestroy(comm) : ncclCommAbort(comm);
  lock.lock();
}

void Session::free_everything() noexcept {
  for (const auto& [memory, handle] : allocated_) ncclMemFree(memory);
  allocated_.clear();
  inflight_.clear();
  free_.clear();
  ops_.clear();
  cudaFree(word_);
  word_ = nullptr;
  if (stream_ != nullptr) cudaStreamDestroy(stream_);
  stream_ = nullptr;
}

}  // namespace ddprun::nccl_backend
