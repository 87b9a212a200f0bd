// The full mesh: one TCP connection per pair of ranks, made with Gloo's tcp device and the host's allgather.
#pragma once

#include <gloo/context.h>

#include <memory>
#include <string>
#include <vector>

#include "connection_watchdog.hpp"
#include "ddprun/plugin/comm_plugin.hpp"
#include "host/liveness.hpp"

namespace ddprun::gloo_backend {

// Not movable. One thread at a time, except for what ConnectionWatchdog allows.
class Mesh {
 public:
  // Collective. Blocks until all connections are made, at most host.deadline(), or until the host's abort flag is set.
  // Listens on listening_address() (address.hpp). Throws CommError.
  explicit Mesh(const Host& host) : Mesh(host, host::places_of(host)) {}
  ~Mesh();
  Mesh(const Mesh&) = delete;
  Mesh& operator=(const Mesh&) = delete;

  // For Gloo's algorithms. The watchdog can end all waits of its buffers.
  const std::shared_ptr<gloo::Context>& context() const noexcept { return context_; }
  ConnectionWatchdog& watchdog() noexcept { return watchdog_; }

  // After a failure: ends all connections, so that Gloo's thread stops using the caller's memory. At most 20 ms each.
  void close() noexcept;

 private:
  Mesh(const Host& host, const std::vector<host::Place>& places);
  // Makes the connection to each rank; none to this one. Gloo takes the first connection that reaches a port. This can
  // be another program's, which looks for its own server. So the ranks check all connections, and if one is wrong, all
  // connect again, with new ports.
  std::vector<Descriptor> connect(const Host& host);
  // `problem`: set if a connection is missing, else unchanged.
  std::vector<Descriptor> try_to_connect(const Host& host, std::string& problem);
  void connect_pairs(const Host& host, const std::vector<std::vector<char>>& addresses, std::string& problem);
  // After this, collectives may begin.
  void serve(std::vector<Descriptor> sockets);
  bool is_closed(int rank);

  ConnectionWatchdog watchdog_;
  std::shared_ptr<gloo::transport::Device> device_;
  std::shared_ptr<gloo::transport::Context> pairs_;
  std::shared_ptr<gloo::Context> context_;
  std::unique_ptr<gloo::transport::UnboundBuffer> probe_;
};

}  // namespace ddprun::gloo_backend
