#include <atomic>
#include <cstdio>
#include <exception>
#include <map>
#include <mutex>
#include <new>
#include <utility>

#include "ddprun/plugin/comm_plugin.hpp"

namespace ddprun::detail {
namespace {

// Writes one line into a buffer of the given size. Allocates nothing: it also runs when memory has run out.
void write_line(char* to, std::size_t size, const char* text) noexcept {
  if (to == nullptr || size == 0) return;
  std::snprintf(to, size, "%s", text);
  for (char* at = to; *at != '\0'; ++at) {
    if (*at == '\n' || *at == '\r') *at = ' ';
  }
}

constexpr const char* kAborted = "the communicator was aborted";

// What a ddprun_comm* of such a plugin points to.
struct Handle {
  explicit Handle(Host its_host) : host(std::move(its_host)) {}

  Host host;
  std::unique_ptr<CommBackend> backend;
  std::atomic<bool> aborted{false};
  ddprun_status broken = DDPRUN_OK;  // the first failure after which nothing works any more
  char error[1024] = "";
  std::mutex memory_mutex;  // free may be called while a collective runs
  std::map<void*, std::shared_ptr<void>> memory;

  ddprun_status fail(ddprun_status status, const char* text) noexcept {
    write_line(error, sizeof error, text);
    return status;
  }
};

Handle& handle_of(ddprun_comm* comm) {
  return *reinterpret_cast<Handle*>(comm);
}

// Runs body() and gives its outcome as a status; fail(status, text) keeps the text.
template <class Body, class Fail>
ddprun_status guarded(Body&& body, Fail&& fail) noexcept {
  try {
    body();
    return DDPRUN_OK;
  } catch (const CommError& error) {
    return fail(static_cast<ddprun_status>(error.status()), error.what());
  } catch (const std::bad_alloc&) {
    return fail(DDPRUN_NO_MEMORY, "out of memory");
  } catch (const std::exception& exception) {
    return fail(DDPRUN_INTERNAL, exception.what());
  } catch (...) {
    return fail(DDPRUN_INTERNAL, "an exception that is no std::exception");
  }
}

bool is_aborted(const Handle& handle) noexcept {
  return handle.aborted.load(std::memory_order_acquire) || handle.host.aborted();
}

// Runs body on the backend, whatever state it is in.
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

// Runs body on a backend that works. After an abort, and after a failure that leaves it unusable, body does not run.
template <class Body>
ddprun_status call(ddprun_comm* comm, Body&& body) noexcept {
  Handle& handle = handle_of(comm);
  if (is_aborted(handle)) return handle.fail(DDPRUN_ABORTED, kAborted);
  if (handle.broken != DDPRUN_OK) return handle.broken;  // its text is still in place
  return attempt(handle, [&] { body(handle); });
}

// Starts a collective by start(backend), and gives its request.
template <class Start>
ddprun_status begin(ddprun_comm* comm, ddprun_request** out, Start&& start) noexcept {
  return call(comm,
              [&](Handle& handle) { *out = reinterpret_cast<ddprun_request*>(&start(*handle.backend).release()); });
}

}  // namespace

ddprun_status start_collective(StartCollective start, ddprun_comm* comm, const ddprun_collective* collective,
                               ddprun_request** out) {
  return begin(comm, out, [&](CommBackend& backend) { return (backend.*start)(from_table(*collective)); });
}

ddprun_status barrier(ddprun_comm* comm, const ddprun_collective*, ddprun_request** out) {
  return begin(comm, out, [](CommBackend& backend) { return backend.barrier(); });
}

ddprun_status exchange(ddprun_comm* comm, const ddprun_exchange* given, ddprun_request** out) {
  return begin(comm, out, [&](CommBackend& backend) { return backend.exchange(from_table(*given, backend.size())); });
}

ddprun_status test(ddprun_comm* comm, ddprun_request* request, int32_t* done) {
  return call(comm,
              [&](Handle& handle) { *done = handle.backend->test(*reinterpret_cast<Request*>(request)) ? 1 : 0; });
}

// Runs on aborted and broken communicators too: the backend must get the request back.
ddprun_status wait(ddprun_comm* comm, ddprun_request* request, uint32_t timeout_ms, ddprun_comm_execution* execution) {
  Handle& handle = handle_of(comm);
  const ddprun_status status = attempt(handle, [&] {
    const ExecutionInfo info =
        handle.backend->wait(*reinterpret_cast<Request*>(request), std::chrono::milliseconds(timeout_ms));
    if (execution == nullptr) return;
    execution->algorithm = info.algorithm;
    execution->transport = info.transport;
  });
  return status == DDPRUN_OK && is_aborted(handle) ? handle.fail(DDPRUN_ABORTED, kAborted) : status;
}

ddprun_status async_error(ddprun_comm* comm) {
  return call(comm, [&](Handle& handle) { handle.backend->async_error(); });
}

void abort(ddprun_comm* comm) {
  Handle& handle = handle_of(comm);
  handle.aborted.store(true, std::memory_order_release);
  handle.backend->abort();
}

const char* last_error(ddprun_comm* comm) {
  return handle_of(comm).error;
}

ddprun_status alloc(ddprun_comm* comm, uint64_t bytes, void** out) {
  return call(comm, [&](Handle& handle) {
    auto memory = handle.backend->allocate(bytes);
    const std::lock_guard lock(handle.memory_mutex);
    *out = handle.memory.emplace(memory.get(), memory).first->first;
  });
}

void free(ddprun_comm* comm, void* memory) {
  Handle& handle = handle_of(comm);
  decltype(handle.memory)::node_type freed;  // outside the lock: freeing may take its time
  const std::lock_guard lock(handle.memory_mutex);
  freed = handle.memory.extract(memory);
}

void destroy(ddprun_comm* comm) {
  delete reinterpret_cast<Handle*>(comm);
}

ddprun_status create_backend(MakeCommBackend* make, const CommPluginInfo& info, const ddprun_comm_host* host,
                             ddprun_comm** out) {
  if (host->struct_size < sizeof(ddprun_comm_host)) {
    write_line(host->error, host->error_size, "the plugin was built for a newer ddprun than this one; build it again");
    return DDPRUN_INVALID;
  }
  return guarded(
      [&] {
        const auto count = static_cast<uint32_t>(info.algorithms.size());
        auto handle = std::make_unique<Handle>(
            Host(*host, info.name, capabilities_of(info.capabilities, info.algorithms.data(), count), info.options));
        handle->backend = make(handle->host);
        *out = reinterpret_cast<ddprun_comm*>(handle.release());
      },
      [&](ddprun_status status, const char* text) {
        const bool aborted = status != DDPRUN_INVALID && is_raised(host->abort_flag);
        write_line(host->error, host->error_size, aborted ? kAborted : text);
        return aborted ? DDPRUN_ABORTED : status;
      });
}

}  // namespace ddprun::detail
