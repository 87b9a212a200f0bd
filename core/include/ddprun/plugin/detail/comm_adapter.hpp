// The functions of the C table, in front of a ddprun::Communicator: they check, call, and turn exceptions into
// statuses. Included by comm_plugin.hpp only.
#pragma once

#include <atomic>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <new>

#include "ddprun/plugin/comm_plugin.hpp"
#include "ddprun/plugin/detail/comm_check.hpp"

namespace ddprun {
namespace detail {

// Writes one line into a buffer of the given size. Allocates nothing: it also serves when memory has run out.
inline void write_line(char* to, std::size_t size, const char* text) noexcept {
  if (to == nullptr || size == 0) return;
  std::snprintf(to, size, "%s", text);
  for (char* at = to; *at != '\0'; ++at) {
    if (*at == '\n' || *at == '\r') *at = ' ';
  }
}

constexpr const char* kAborted = "the communicator was aborted";

// What a ddprun_comm* of such a plugin points to.
struct Handle {
  Declaration declared;
  Host host;
  std::unique_ptr<Communicator> communicator;
  std::atomic<bool> aborted{false};
  ddprun_status broken = DDPRUN_OK;  // the first failure after which nothing works any more
  char error[1024] = "";

  ddprun_status fail(ddprun_status status, const char* text) noexcept {
    write_line(error, sizeof error, text);
    return status;
  }
};

inline Handle& handle_of(ddprun_comm* comm) {
  return *reinterpret_cast<Handle*>(comm);
}

// Runs body() and gives its outcome as a status; fail(status, text) keeps the text.
template <class Body, class Fail>
ddprun_status guarded(Body&& body, Fail&& fail) noexcept {
  try {
    body();
    return DDPRUN_OK;
  } catch (const Failure& failure) {
    return fail(failure.status(), failure.what());
  } catch (const std::bad_alloc&) {
    return fail(DDPRUN_NO_MEMORY, "out of memory");
  } catch (const std::exception& exception) {
    return fail(DDPRUN_INTERNAL, exception.what());
  } catch (...) {
    return fail(DDPRUN_INTERNAL, "an exception that is no std::exception");
  }
}

inline bool is_aborted(const Handle& handle) noexcept {
  return handle.aborted.load(std::memory_order_acquire) || handle.host.aborted();
}

// Runs body on the communicator, whatever state it is in.
template <class Body>
ddprun_status attempt(Handle& handle, Body&& body) noexcept {
  const ddprun_status status =
      guarded(body, [&](ddprun_status kind, const char* text) { return handle.fail(kind, text); });
  if (status == DDPRUN_OK || status == DDPRUN_INVALID || status == DDPRUN_UNSUPPORTED) return status;
  // An abort shows inside the backend as whatever it broke: closed sockets, cancelled waits.
  if (is_aborted(handle)) return handle.fail(DDPRUN_ABORTED, kAborted);
  if (status == DDPRUN_TIMEOUT || status == DDPRUN_PEER_LOST) handle.broken = status;
  return status;
}

// Runs body on a live communicator. After an abort, and after a failure that leaves it unusable, body does not run.
template <class Body>
ddprun_status call(Handle& handle, Body&& body) noexcept {
  if (is_aborted(handle)) return handle.fail(DDPRUN_ABORTED, kAborted);
  if (handle.broken != DDPRUN_OK) return handle.broken;  // its text is still in place
  return attempt(handle, body);
}

using Start = Request& (*)(Communicator&, const ddprun_collective&);

inline ddprun_status start(ddprun_comm* comm, Collective kind, const ddprun_collective* collective,
                           ddprun_request** out, Start begin) noexcept {
  Handle& handle = handle_of(comm);
  return call(handle, [&] {
    if (out == nullptr) throw Failure(DDPRUN_INVALID, "the pointer for the request is null");
    check(handle.declared, handle.host, kind, collective);
    *out = reinterpret_cast<ddprun_request*>(&begin(*handle.communicator, *collective));
  });
}

inline ddprun_status allreduce(ddprun_comm* comm, const ddprun_collective* collective, ddprun_request** out) {
  return start(comm, Collective::allreduce, collective, out,
               [](Communicator& to, const ddprun_collective& c) -> Request& { return to.allreduce(c); });
}
inline ddprun_status broadcast(ddprun_comm* comm, const ddprun_collective* collective, ddprun_request** out) {
  return start(comm, Collective::broadcast, collective, out,
               [](Communicator& to, const ddprun_collective& c) -> Request& { return to.broadcast(c); });
}
inline ddprun_status allgather(ddprun_comm* comm, const ddprun_collective* collective, ddprun_request** out) {
  return start(comm, Collective::allgather, collective, out,
               [](Communicator& to, const ddprun_collective& c) -> Request& { return to.allgather(c); });
}
inline ddprun_status reduce_scatter(ddprun_comm* comm, const ddprun_collective* collective, ddprun_request** out) {
  return start(comm, Collective::reduce_scatter, collective, out,
               [](Communicator& to, const ddprun_collective& c) -> Request& { return to.reduce_scatter(c); });
}
inline ddprun_status barrier(ddprun_comm* comm, const ddprun_collective* collective, ddprun_request** out) {
  return start(comm, Collective::barrier, collective, out,
               [](Communicator& to, const ddprun_collective&) -> Request& { return to.barrier(); });
}

inline ddprun_status test(ddprun_comm* comm, ddprun_request* request, int32_t* done) {
  Handle& handle = handle_of(comm);
  return call(handle, [&] {
    if (request == nullptr || done == nullptr) throw Failure(DDPRUN_INVALID, "test: a pointer is null");
    *done = handle.communicator->test(*reinterpret_cast<Request*>(request)) ? 1 : 0;
  });
}

// Runs on aborted and broken communicators too: the request has to be taken back.
inline ddprun_status wait(ddprun_comm* comm, ddprun_request* request, uint32_t timeout_ms, ddprun_comm_served* served) {
  Handle& handle = handle_of(comm);
  const ddprun_status status = attempt(handle, [&] {
    if (request == nullptr) throw Failure(DDPRUN_INVALID, "wait: the request is null");
    auto& started = *reinterpret_cast<Request*>(request);
    const Request answer = started;
    handle.communicator->wait(started, std::chrono::milliseconds(timeout_ms));
    if (served == nullptr) return;
    if (served->struct_size < sizeof(ddprun_comm_served)) {
      throw Failure(DDPRUN_INVALID, "wait: ddprun_comm_served.struct_size is too small");
    }
    served->algorithm = answer.algorithm;
    served->transport = answer.transport;
  });
  return status == DDPRUN_OK && is_aborted(handle) ? handle.fail(DDPRUN_ABORTED, kAborted) : status;
}

inline void abort(ddprun_comm* comm) {
  Handle& handle = handle_of(comm);
  handle.aborted.store(true, std::memory_order_release);
  handle.communicator->abort();
}

inline const char* last_error(ddprun_comm* comm) {
  return handle_of(comm).error;
}

inline ddprun_status alloc(ddprun_comm* comm, uint64_t bytes, void** out) {
  Handle& handle = handle_of(comm);
  return call(handle, [&] {
    if (out == nullptr) throw Failure(DDPRUN_INVALID, "alloc: the pointer for the memory is null");
    *out = handle.communicator->alloc(bytes);
  });
}
inline void free(ddprun_comm* comm, void* memory) {
  if (memory != nullptr) handle_of(comm).communicator->free(memory);
}

inline void destroy(ddprun_comm* comm) {
  delete reinterpret_cast<Handle*>(comm);
}

template <class T, const CommPluginInfo& info>
ddprun_status create(const ddprun_comm_host* host, ddprun_comm** out) {
  if (host == nullptr || out == nullptr || host->struct_size < sizeof(ddprun_comm_host)) return DDPRUN_INVALID;
  return guarded(
      [&] {
        check(info, *host);
        std::unique_ptr<Handle> handle(new Handle{declaration(info, host->algorithm), Host(*host), nullptr});
        handle->communicator = std::make_unique<T>(static_cast<const Host&>(handle->host));
        *out = reinterpret_cast<ddprun_comm*>(handle.release());
      },
      [&](ddprun_status status, const char* text) {
        const bool aborted = status != DDPRUN_INVALID && is_raised(host->abort_flag);
        write_line(host->error, host->error_size, aborted ? kAborted : text);
        return aborted ? DDPRUN_ABORTED : status;
      });
}

}  // namespace detail

inline bool Communicator::test(Request&) {
  return true;
}
inline void Communicator::wait(Request&, std::chrono::milliseconds) {}
inline void* Communicator::alloc(uint64_t) {
  throw Failure(DDPRUN_UNSUPPORTED, "alloc is declared (DDPRUN_CAP_ALLOC) but not written");
}
inline void Communicator::free(void*) noexcept {}

template <class T, const CommPluginInfo& info>
constexpr ddprun_comm_plugin comm_plugin() {
  const bool allocates = (info.capabilities & DDPRUN_CAP_ALLOC) != 0;
  ddprun_comm_plugin table = {};
  table.struct_size = sizeof table;
  table.abi = DDPRUN_COMM_ABI;
  table.name = info.name;
  table.version = info.version;
  table.library = info.library;
  table.capabilities = info.capabilities;
  table.algorithms = info.algorithms.data();
  table.algorithm_count = static_cast<uint32_t>(info.algorithms.size());
  table.create = detail::create<T, info>;
  table.destroy = detail::destroy;
  table.allreduce = detail::allreduce;
  table.broadcast = detail::broadcast;
  table.allgather = detail::allgather;
  table.reduce_scatter = detail::reduce_scatter;
  table.barrier = detail::barrier;
  table.test = detail::test;
  table.wait = detail::wait;
  table.abort = detail::abort;
  table.last_error = detail::last_error;
  table.alloc = allocates ? detail::alloc : nullptr;
  table.free = allocates ? detail::free : nullptr;
  return table;
}

}  // namespace ddprun
