#include "session.hpp"

#include <algorithm>

namespace ddprun::nccl_backend {
namespace {

using namespace std::chrono_literals;

constexpr auto kLonger = 1500ms;  // longer than leave() takes

// NCCL accepts a collective within some microseconds; the first one connects the ranks, which takes longer.
void pause(int turn) {
  if (turn < 200) return std::this_thread::yield();
  std::this_thread::sleep_for(turn < 1000 ? 50us : 1000us);
}

}  // namespace

std::shared_ptr<Session> Session::join(const Host& host, const Device& device,
                                       const std::vector<host::Process>& processes, const ncclUniqueId& id) {
  const OnDevice here(device.ordinal);
  const std::shared_ptr<Session> self(new Session(host, device, processes));
  const std::shared_ptr<Session> owner(self.get(), [self](Session*) { self->close(); });
  // The highest stream priority, so that a collective can run while a kernel runs.
  int least = 0;
  int greatest = 0;
  check("the priorities of streams", cudaDeviceGetStreamPriorityRange(&least, &greatest));
  check("a stream", cudaStreamCreateWithPriority(&self->stream_, cudaStreamNonBlocking, greatest));
  check("memory for the barrier", cudaMalloc(reinterpret_cast<void**>(&self->word_), sizeof *self->word_));
  check("memory for the barrier", cudaMemsetAsync(self->word_, 0, sizeof *self->word_, self->stream_));
  self->thread_ = std::thread([self] { self->watch(); });

  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  self->run("joining",
            [&](ncclComm_t) { return ncclCommInitRankConfig(&self->comm_, host.size(), id, host.rank(), &config); });
  return owner;
}

// If the thread does not end in time, it is left running and frees what it can.
void Session::close() noexcept {
  if (!thread_.joinable()) {
    free_everything();
    return;
  }
  Lock lock(mutex_);
  closing_ = true;
  changed_.notify_all();
  const bool has_left = changed_.wait_for(lock, kLonger, [this] { return has_left_; });
  lock.unlock();
  has_left ? thread_.join() : thread_.detach();
}

ncclResult_t Session::progress() {
  const std::lock_guard lock(mutex_);
  if (failure_) throw *failure_;
  ncclResult_t state = ncclSuccess;
  const ncclResult_t result = ncclCommGetAsyncError(comm_, &state);
  return result == ncclSuccess ? state : result;
}

void Session::finish_call(const char* name, ncclResult_t result) {
  const auto deadline = Clock::now() + host_.deadline();
  for (int turn = 0; result == ncclInProgress; ++turn) {
    if (is_aborted()) fail({CommStatus::aborted, std::string(name) + ": aborted"});
    if (Clock::now() >= deadline) fail(timeout_of(name, host_.deadline()));
    pause(turn);
    result = progress();
  }
  if (result != ncclSuccess) fail(failure_of(name, result, ncclGetLastError(nullptr)));
  const std::lock_guard lock(mutex_);
  doing_ = kIdle;
}

InflightOp& Session::acquire() {
  const std::lock_guard lock(mutex_);
  if (failure_) throw *failure_;
  if (free_.empty()) {
    ops_.push_back(std::make_unique<InflightOp>());
    free_.push_back(ops_.back().get());
  }
  InflightOp& op = *free_.back();
  free_.pop_back();
  op.is_barrier = op.is_waited = op.has_ended = false;
  op.begun.reset();
  return op;
}

void Session::enter(InflightOp& op) {
  const std::lock_guard lock(mutex_);
  inflight_.push_back(&op);
}

void Session::release(InflightOp& op) noexcept {
  const std::lock_guard lock(mutex_);
  op.is_waited = true;
  if (op.has_ended) free_.push_back(&op);
}

void Session::wait_for(const InflightOp& op, std::chrono::milliseconds timeout) {
  const auto deadline = Clock::now() + timeout;
  cudaError_t state = op.done.state();
  for (int turn = 0; state == cudaErrorNotReady; ++turn) {
    async_error();
    if (is_aborted()) fail({CommStatus::aborted, std::string(op.name) + ": aborted"});
    if (Clock::now() >= deadline) fail(timeout_of(op.name, timeout));
    pause(turn);
    state = op.done.state();
  }
  if (state != cudaSuccess) fail(failure_of(op.name, state));
  async_error();  // the GPU reaches the event after an abort too
}

void* Session::alloc(uint64_t bytes) {
  async_error();
  void* memory = nullptr;
  check("memory for buckets", ncclMemAlloc(&memory, std::max<uint64_t>(bytes, 1)));
  void* handle = nullptr;
  try {
    run("registering memory", [&](ncclComm_t comm) { return ncclCommRegister(comm, memory, bytes, &handle); });
    const std::lock_guard lock(mutex_);
    allocated_.emplace(memory, handle);
  } catch (...) {
    ncclMemFree(memory);
    throw;
  }
  return memory;
}

void Session::free(void* memory) noexcept {
  cudaDeviceSynchronize();
  {
    const std::lock_guard lock(mutex_);
    const auto found = allocated_.find(memory);
    if (found == allocated_.end()) return;
    if (comm_ != nullptr && found->second != nullptr) ncclCommDeregister(comm_, found->second);
    allocated_.erase(found);
  }
  ncclMemFree(memory);
}

void Session::async_error() {
  const std::lock_guard lock(mutex_);
  if (failure_) throw *failure_;
}

void Session::fail(const CommError& failure) {
  Lock lock(mutex_);
  if (!failure_) {
    const CommError named = with_lost_rank(lock, failure);
    if (!failure_) failure_.emplace(named);
  }
  changed_.notify_all();
  throw *failure_;
}

void Session::abort() noexcept {
  aborted_.store(true, std::memory_order_release);
  changed_.notify_all();
}

}  // namespace ddprun::nccl_backend
