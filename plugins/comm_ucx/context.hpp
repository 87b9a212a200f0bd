// UCX itself: a context with the transports that were asked for, and a worker, which moves messages when it is driven.
#pragma once

#include <ucp/api/ucp.h>

#include <chrono>
#include <string>

#include "ddprun/plugin/comm_plugin.hpp"

namespace ddprun::ucx_backend {

// Which transports and network devices, in UCX's words: UCX_TLS, UCX_NET_DEVICES.
struct Transports {
  std::string tls;
  std::string devices;
  bool asked_for = true;  // false: UCX may be without some of them

  // comm.options.tls and .devices, else UCX's own variables; else shared memory where all ranks share a host, so that
  // no port is opened, and all that UCX has where they do not. Never posix unless it is asked for: UCX makes a file in
  // /dev/shm, writes all of it, and unlinks it only then, so that a rank that is killed meanwhile leaves it there. A
  // System V segment it marks for removal as soon as it is attached. On one host those for a GPU too where this rank
  // has one.
  static Transports of(const Host& host, bool one_host);
  // Whether ranks of one host may talk through shared memory.
  bool share_memory() const;
};

class Context {
 public:
  // Throws CommError: CommStatus::invalid where UCX has none of what was asked for, CommStatus::unsupported where it is to take
  // CUDA memory and does not.
  Context(const Transports& transports, int ranks, int ranks_here, bool takes_cuda);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ucp_context_h get() const noexcept { return context_; }

 private:
  // `said`: what UCX complained about.
  void require_cuda(const Transports& transports, const std::string& said) const;

  ucp_context_h context_ = nullptr;
};

// For one thread at a time. Outlived by its context. Its end ends its endpoints and all requests.
class Worker {
 public:
  explicit Worker(const Context& context);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ucp_worker_h get() const noexcept { return worker_; }
  // What peers need to reach it.
  std::string address() const;
  // Until there is something for it to move, but at most so long, which is less than a second.
  void sleep(std::chrono::nanoseconds longest) const noexcept;

 private:
  ucp_worker_h worker_ = nullptr;
  int events_ = -1;  // the worker's own
};

}  // namespace ddprun::ucx_backend
