// UCX itself: its warnings and errors, a context with the requested transports, and a worker, which moves messages when
// it is polled.
#pragma once

#include <ucp/api/ucp.h>

#include <chrono>
#include <memory>
#include <string>

#include "ddprun/plugin/comm_plugin.hpp"

namespace ddprun::ucx_backend {

// UCX's warnings and errors on this thread since the last call, in one line; "" if there are none. UCX would print them
// to standard output, which belongs to the run. They become part of the error that they belong to.
std::string take_warnings();

// Throws CommError(status), unless result is UCS_OK. Its text: `what`, and UCX's warnings or else its name of `result`.
void check(ucs_status_t result, CommStatus status, const std::string& what);

// The transports and network devices, with UCX's names: UCX_TLS, UCX_NET_DEVICES.
struct Transports {
  std::string tls;
  std::string devices;
  bool asked_for = true;  // false: UCX may lack some of them

  // comm.options.tls and .devices, else UCX's own variables. The default if all ranks share a host: shared memory, so
  // that no port is opened, and the transports of a GPU if this rank has one. Otherwise all that UCX has. Never posix
  // by default: UCX creates a file in /dev/shm, writes all of it, and only then unlinks it; a rank that is killed in
  // between leaves the file. UCX marks a System V segment for removal as soon as it is attached.
  // Throws CommError(CommStatus::no_memory) if posix is asked for and /dev/shm is too small: UCX 1.22 would crash.
  static Transports of(const Host& host, int ranks_here);
  // Whether ranks of one host may communicate through shared memory.
  bool share_memory() const;
};

class Context {
 public:
  // Throws CommError: CommStatus::invalid if UCX has none of the requested transports, CommStatus::unsupported if it
  // does not support CUDA memory and takes_cuda is true.
  Context(const Transports& transports, int ranks, int ranks_here, bool takes_cuda);
  ucp_context_h get() const noexcept { return context_.get(); }

 private:
  void require_cuda(const Transports& transports, const std::string& warnings) const;

  std::unique_ptr<ucp_context, void (*)(ucp_context_h)> context_{nullptr, ucp_cleanup};
};

// One thread at a time. The context must outlive it. Its destructor ends its endpoints and all requests.
class Worker {
 public:
  explicit Worker(const Context& context);
  ~Worker() { ucp_worker_destroy(worker_); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ucp_worker_h get() const noexcept { return worker_; }
  // What peers need to reach this worker.
  std::string address() const;
  // Sleeps until there is something to move, at most `longest`, which is less than a second.
  void sleep(std::chrono::nanoseconds longest) const noexcept;

 private:
  ucp_worker_h worker_ = nullptr;
  int events_ = -1;  // the worker owns it
};

}  // namespace ddprun::ucx_backend
