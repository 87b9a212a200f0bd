#include "faulty_requests.hpp"

#include <cstring>

namespace fakes {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kSizes[] = {2, 2, 4, 8, 1, 2, 4, 8, 1};  // by dtype, in bytes

}  // namespace

Communicator::~Communicator() {
  if (worker_.joinable()) {
    {
      const std::lock_guard lock(mutex_);
      leaving_ = true;
      if (!queue_.empty()) plugin.abort(inner);
    }
    changed_.notify_all();
    worker_.join();
  }
  if (inner != nullptr) plugin.destroy(inner);
}

void Communicator::start() {
  worker_ = std::thread([this] { work(); });
}

ddprun_status Communicator::meet() {
  const ddprun_collective nothing = {};
  return worker_.joinable() ? wait(queue(plugin.barrier, nothing), 60s) : run(plugin.barrier, nothing, error);
}

ddprun_status Communicator::broken() {
  const std::lock_guard lock(mutex_);
  return broken_;
}

ddprun_request* Communicator::queue(ddprun_collective_fn function, const ddprun_collective& call) {
  auto* const request = new Request();
  request->function = function;
  request->call = call;
  request->callers = &call;
  return enter(request);
}

ddprun_request* Communicator::queue(const ddprun_exchange& call) {
  auto* const request = new Request();
  request->send.assign(call.send, call.send + size);
  request->recv.assign(call.recv, call.recv + size);
  request->exchange = call;
  request->exchange.send = request->send.data();
  request->exchange.recv = request->recv.data();
  return enter(request);
}

ddprun_request* Communicator::enter(Request* request) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(request);
  }
  changed_.notify_all();
  return reinterpret_cast<ddprun_request*>(request);
}

ddprun_request* Communicator::finished() {
  auto* const request = new Request();
  request->done = true;
  return reinterpret_cast<ddprun_request*>(request);
}

bool Communicator::is_done(ddprun_request* request) {
  const std::lock_guard lock(mutex_);
  return of(request).done;
}

// Into the buffer of a failed call, once the caller has put something else there.
void Communicator::write_later(const Request& request) {
  if (!is("writes_after_failure") || request.call.count == 0 || rank != 0) return;
  std::thread([recv = static_cast<volatile char*>(request.call.recv), left = *static_cast<char*>(request.call.recv)] {
    while (*recv == left) std::this_thread::sleep_for(1ms);
    std::this_thread::sleep_for(100ms);
    *recv = static_cast<char>(*recv + 1);
  }).detach();
}

ddprun_status Communicator::wait(ddprun_request* handle, std::chrono::milliseconds timeout) {
  const std::unique_ptr<Request> request(&of(handle));
  std::unique_lock lock(mutex_);
  const auto is_done = [&] { return request->done; };
  if (!changed_.wait_for(lock, timeout, is_done)) {
    broken_ = DDPRUN_TIMEOUT;
    error = "not all ranks came in time";
    lock.unlock();
    plugin.abort(inner);
    lock.lock();
    changed_.wait(lock, is_done);
    write_later(*request);
    return DDPRUN_TIMEOUT;
  }
  if (request->status != DDPRUN_OK) {
    error = request->error;
    write_later(*request);
  }
  return request->status;
}

void Communicator::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    const auto has_work = [&] { return leaving_ || !queue_.empty(); };
    while (is("polls") && !has_work()) {
      lock.unlock();
      lock.lock();
    }
    changed_.wait(lock, has_work);
    if (queue_.empty()) return;
    Request& request = *queue_.front();
    lock.unlock();
    if (is("reads_call_later") && request.callers != nullptr) {
      std::this_thread::sleep_for(20ms);
      request.call = *request.callers;
    }
    auto* const send = static_cast<char*>(const_cast<void*>(request.call.send));
    const bool has_send = request.function != plugin.broadcast && request.call.count > 0;
    if (has_send && is("changes_send")) *const_cast<volatile char*>(send) = *send;
    if (has_send && is("reads_past_send")) {
      const std::size_t blocks = request.function == plugin.reduce_scatter ? size : 1;
      read = send[request.call.count * kSizes[request.call.dtype] * blocks];
    }
    const ddprun_status status =
        request.exchange.struct_size != 0 ? run_exchange(request) : run(request.function, request.call, request.error);
    const ddprun_collective call = request.call;
    if (status == DDPRUN_OK) spoil(request);
    lock.lock();
    queue_.pop_front();
    request.status = status;
    request.done = true;
    if (status != DDPRUN_OK && broken_ == DDPRUN_OK) broken_ = status;
    changed_.notify_all();
    if (!is("keeps_buffers") || status != DDPRUN_OK || call.count == 0) continue;
    lock.unlock();
    std::this_thread::sleep_for(10ms);
    *static_cast<unsigned char*>(call.recv) = 1;
    lock.lock();
  }
}

ddprun_status Communicator::run(ddprun_collective_fn function, const ddprun_collective& call, std::string& text) {
  ddprun_request* request = nullptr;
  const ddprun_status status = function(inner, &call, &request);
  return end(status, request, text);
}

ddprun_status Communicator::run_exchange(Request& request) {
  if (is("exchange_waits")) run(plugin.barrier, {}, request.error);
  ddprun_request* started = nullptr;
  const ddprun_status begun = plugin.exchange(inner, &request.exchange, &started);
  const ddprun_status status = end(begun, started, request.error);
  for (const ddprun_block& block : request.recv) {
    constexpr uint64_t kMuch = 1'000'000;
    if (is("wrong_large_blocks") && status == DDPRUN_OK && block.bytes > kMuch) *static_cast<char*>(block.data) ^= 1;
  }
  return status;
}

ddprun_status Communicator::end(ddprun_status status, ddprun_request* request, std::string& text) {
  if (status == DDPRUN_OK) status = plugin.wait(inner, request, 0, nullptr);
  if (status != DDPRUN_OK) text = plugin.last_error(inner);
  return status;
}

// Makes the result of a collective wrong, where the fault says so.
void Communicator::spoil(Request& request) {
  const ddprun_collective& call = request.call;
  auto* const recv = static_cast<unsigned char*>(call.recv);
  const std::size_t element = kSizes[call.dtype];
  const bool allreduce = request.function == plugin.allreduce;
  if (is("wrong_at_some_counts") && allreduce && call.count > 300 && call.count % 8 == 5) recv[0] ^= 1;
  // As another order of additions would round it.
  if (is("adds_otherwise") && allreduce && call.dtype == DDPRUN_FLOAT32 && call.count > 1) recv[element] ^= 1;
  if (is("flushes_float16") && allreduce && call.dtype == DDPRUN_FLOAT16) {
    for (uint64_t i = 0; i < call.count; ++i) {
      uint16_t bits = 0;
      std::memcpy(&bits, recv + i * 2, 2);
      if ((bits & 0x7c00) == 0) bits &= 0x8000;
      std::memcpy(recv + i * 2, &bits, 2);
    }
  }
  if (is("varies") && request.function == plugin.reduce_scatter && call.count > 0) {
    static unsigned char calls = 0;
    recv[0] ^= ++calls & 1;
  }
  if (is("saturates_float16") && allreduce && call.dtype == DDPRUN_FLOAT16) {
    for (uint64_t i = 0; i < call.count; ++i) {
      const uint16_t infinity = 0x7c00, largest = 0x7bff;
      if (std::memcmp(recv + i * 2, &infinity, 2) == 0) std::memcpy(recv + i * 2, &largest, 2);
    }
  }
  if (is("wrong_from_root_0") && request.function == plugin.broadcast && call.root == 0 && call.count > 100'000) {
    recv[0] ^= 1;
  }
  if (is("spoils_blocks") && request.function == plugin.reduce_scatter && call.count > 0) {
    const auto* const send = static_cast<const unsigned char*>(call.send);
    const std::size_t bytes = call.count * element;
    if (recv > send && recv < send + 64 * bytes && (recv - send) % bytes == 0) std::memset(recv - bytes, 0, bytes);
  }
}

}  // namespace fakes
