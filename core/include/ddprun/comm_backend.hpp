// CommBackend: the collectives of one group of ranks. ddprun calls it, and the author of a communication plugin
// implements it. The C function table of ddprun/plugin/comm_plugin.h lies between the two. Torch-free, header-only.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ddprun/collective.hpp"
#include "ddprun/error.hpp"

namespace ddprun {

// An allreduce algorithm and the dtypes, operations and memory kinds that it supports. bits() makes the masks.
struct AlgorithmInfo {
  std::string name;
  uint32_t dtypes = 0;
  uint32_t ops = 0;
  uint32_t memory = ~0U;
  bool from_alloc = false;       // takes memory from allocate(), and no other
  uint32_t canonical_order = 0;  // the dtypes of ddprun_comm_algorithm::canonical_order

  bool takes(Memory kind) const { return (memory & bits(kind)) != 0; }
};

struct Capabilities {
  bool host = false;            // takes host memory
  bool cuda = false;            // takes CUDA memory
  bool blocking = false;        // a collective has finished when its call returns
  bool stream_ordered = false;  // a collective is ordered on Collective::stream, as a CUDA kernel is
  bool alloc = false;           // allocate() returns memory that this backend moves faster than malloc's
  bool reduce_scatter = false;  // the optional collective is implemented
  bool exchange = false;        // the same
  Memory alloc_memory = Memory::host;
  std::vector<AlgorithmInfo> algorithms;  // of allreduce; of a communicator: those from which it chooses

  // Whether allreduce of any memory of this kind takes Collective::canonical_order with this dtype.
  bool has_canonical_order(DType dtype, Memory kind) const {
    return std::any_of(algorithms.begin(), algorithms.end(), [&](const AlgorithmInfo& one) {
      return (one.canonical_order & bits(dtype)) != 0 && one.takes(kind) && !one.from_alloc;
    });
  }
};

enum class CommStatus : int32_t {
  ok,
  invalid,      // arguments or options that can never work; nothing was sent
  unsupported,  // a dtype, op, algorithm or memory kind that the backend has not declared
  timeout,      // the deadline passed; the only calls still allowed are abort() and the destructor
  peer_lost,    // the connection to a peer ended; the only calls still allowed are abort() and the destructor
  aborted,      // abort() was called, or the job is ending
  mismatch,     // the ranks called different collectives
  no_memory,
  internal  // any other failure, for example of the library that the backend uses
};

// "timeout", "peer lost", ... Accepts any number, because a plugin may return any.
inline std::string name_of(CommStatus status) {
  constexpr const char* names[] = {"ok",      "invalid",  "unsupported",   "timeout",       "peer lost",
                                   "aborted", "mismatch", "out of memory", "internal error"};
  const auto index = static_cast<std::size_t>(status);
  return index < std::size(names) ? names[index] : "unknown status " + std::to_string(static_cast<int32_t>(status));
}

constexpr ExitCode exit_code_of(CommStatus status) {
  switch (status) {
    case CommStatus::invalid:
    case CommStatus::unsupported: return ExitCode::plugin;
    case CommStatus::timeout:
    case CommStatus::peer_lost:
    case CommStatus::aborted:
    case CommStatus::mismatch: return ExitCode::peer;
    default: return ExitCode::failure;
  }
}

// What a backend throws: the status, and one line that says what is wrong and what to do.
class CommError : public Error {
 public:
  CommError(CommStatus status, const std::string& message) : CommError(status, exit_code_of(status), message) {}
  // For callers that need another exit code, for example while the ranks rendezvous.
  CommError(CommStatus status, ExitCode code, const std::string& message) : Error(code, message), status_(status) {}

  CommStatus status() const noexcept { return status_; }

 private:
  CommStatus status_;
};

// A started collective. The backend owns it. A blocking backend returns the same constant request again and again, one
// for each ExecutionInfo, so that a collective allocates nothing. Other backends derive their requests from it.
struct Request {
  ExecutionInfo info;
};

class CommBackend;

// What a collective returns. Call wait() once. A Work may be destroyed without wait() only after CommBackend::abort().
// It must not outlive the backend. Single-threaded.
class Work {
 public:
  Work(CommBackend& backend, Request& request) : backend_(&backend), request_(&request) {}
  Work(Work&& other) noexcept : backend_(other.backend_), request_(std::exchange(other.request_, nullptr)) {}
  Work& operator=(Work&&) = delete;
  ~Work();

  // True when wait() would return without blocking. Throws as wait().
  bool test();
  // Blocks until the collective has finished, at most `timeout`. Stream-ordered: until the collective is ordered on its
  // stream.
  ExecutionInfo wait(std::chrono::milliseconds timeout);

  // For adapters: the caller takes over the request and must wait for it.
  Request& release() && noexcept { return *std::exchange(request_, nullptr); }

 private:
  CommBackend* backend_;
  Request* request_;  // null once waited for
};

// At least `bytes` bytes of host memory: whole pages, page-aligned, never less than one page.
inline std::shared_ptr<void> allocate_pages(std::size_t bytes) {
  constexpr std::size_t page = 4096;
  const std::size_t pages = std::max<std::size_t>(1, bytes / page + (bytes % page != 0));
  void* const memory = std::aligned_alloc(page, pages * page);
  if (memory == nullptr) throw CommError(CommStatus::no_memory, "out of memory: " + std::to_string(bytes) + " bytes");
  return {memory, std::free};
}

class Host;  // ddprun/plugin/comm_plugin.hpp

// Threads: only one thread calls at a time; abort() may be called from any thread. All ranks call the same collectives
// in the same order with the same count, dtype, op, root and bucket. Until wait() of its Work has returned, the caller
// keeps the buffers alive and does not touch them. Every function but abort() throws CommError.
//
// ddprun's adapter checks every argument before it calls a plugin. A plugin only sees collectives that follow the rules
// above and that it has declared in its capabilities.
class CommBackend {
 public:
  CommBackend(const CommBackend&) = delete;
  CommBackend& operator=(const CommBackend&) = delete;
  virtual ~CommBackend() = default;  // never communicates, never blocks on a peer

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  const std::string& name() const noexcept { return name_; }
  const Capabilities& capabilities() const noexcept { return capabilities_; }

  virtual Work allreduce(const Collective& call) = 0;
  virtual Work broadcast(const Collective& call) = 0;
  virtual Work allgather(const Collective& call) = 0;
  virtual Work barrier() = 0;
  // Optional, see capabilities().
  virtual Work reduce_scatter(const Collective&) {
    throw CommError(CommStatus::unsupported, "this backend has no reduce_scatter");
  }
  virtual Work exchange(const Exchange&) { throw CommError(CommStatus::unsupported, "this backend has no exchange"); }

  // Optional, for backends whose collectives can fail after the call has returned. Throws what the next collective
  // would throw if the backend has failed or was aborted. Does not communicate and never blocks.
  virtual void async_error() {}

  // Makes every blocked call and every later call fail. Callable from any thread, any number of times. Never blocks.
  virtual void abort() noexcept = 0;

  // Page-aligned memory of the kind capabilities().alloc_memory that this backend moves fastest; ordinary memory by
  // default. Collective: all ranks allocate the same sizes in the same order. The last owner frees the memory and must
  // do so before the backend is destroyed.
  virtual std::shared_ptr<void> allocate(std::size_t bytes) { return allocate_pages(bytes); }

  // For backends that do not block; Work calls them. `request` is what one of the collectives above returned. wait()
  // always gives the request back to the backend, even if it throws. It throws CommStatus::timeout after `timeout`.
  virtual bool test(Request&) { return true; }
  virtual ExecutionInfo wait(Request& request, std::chrono::milliseconds) { return request.info; }

 protected:
  CommBackend(int rank, int size, std::string name, Capabilities capabilities)
      : rank_(rank), size_(size), name_(std::move(name)), capabilities_(std::move(capabilities)) {}
  // For the class of a plugin: name and capabilities are those that the plugin declares.
  explicit CommBackend(const Host& host);

 private:
  int rank_;
  int size_;
  std::string name_;
  Capabilities capabilities_;
};

inline Work::~Work() {
  if (request_ == nullptr) return;
  try {
    wait(std::chrono::milliseconds(0));
  } catch (const std::exception&) {  // after an abort
  }
}

inline bool Work::test() {
  return backend_->test(*request_);
}

inline ExecutionInfo Work::wait(std::chrono::milliseconds timeout) {
  return backend_->wait(*std::exchange(request_, nullptr), timeout);
}

}  // namespace ddprun
