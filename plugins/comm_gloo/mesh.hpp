// The full mesh: one TCP connection per pair of ranks, made with Gloo's tcp device and the host's allgather.
#pragma once

#include <gloo/context.h>

#include <memory>
#include <string>
#include <vector>

#include "connection_watchdog.hpp"
#include "ddprun/plugin/comm_plugin.hpp"

namespace ddprun::gloo_backend {

// Not to be moved. One thread at a time, but for what ConnectionWatchdog allows.
class Mesh {
 public:
  // Collective; blocks until all connections stand, at most host.deadline(), or until the host's abort flag is raised.
  // Listens on 127.0.0.1, or on the first address of the interface that comm.options.interface names.
  // Throws CommError.
  explicit Mesh(const Host& host);
  ~Mesh();
  Mesh(const Mesh&) = delete;
  Mesh& operator=(const Mesh&) = delete;

  // For Gloo's algorithms: all waits of its buffers end as the watchdog says.
  const std::shared_ptr<gloo::Context>& context() const noexcept { return context_; }
  ConnectionWatchdog& watchdog() noexcept { return watchdog_; }

  // After a failure: ends all connections and takes user memory away from Gloo's thread. 20 ms per connection at most.
  void close() noexcept;

 private:
  // The connection to each rank, none for this one.
  std::vector<Descriptor> connect(const Host& host);
  void connect_pairs(const Host& host, const std::vector<std::vector<char>>& addresses);
  // Collectives may begin.
  void serve(std::vector<Descriptor> sockets);
  bool is_closed(int rank);

  ConnectionWatchdog watchdog_;
  std::shared_ptr<gloo::transport::Device> device_;
  std::shared_ptr<gloo::transport::Context> pairs_;
  std::shared_ptr<gloo::Context> context_;
  std::unique_ptr<gloo::transport::UnboundBuffer> probe_;
};

}  // namespace ddprun::gloo_backend
