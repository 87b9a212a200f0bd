// The full mesh: one TCP connection per pair of ranks, made with Gloo's tcp device and the host's allgather.
#pragma once

#include <gloo/context.h>

#include <memory>
#include <string>
#include <vector>

#include "ddprun/comm_plugin.hpp"
#include "lifeline.hpp"

namespace ddprun::gloo_backend {

// Not to be moved. One thread at a time, but for what Lifeline allows.
class Mesh {
 public:
  // Collective; blocks until all connections stand, at most host.deadline(). Listens on 127.0.0.1, or on the first
  // address of the interface that comm.options.interface names. Throws Failure.
  explicit Mesh(const Host& host);
  ~Mesh();
  Mesh(const Mesh&) = delete;
  Mesh& operator=(const Mesh&) = delete;

  // For Gloo's algorithms: all waits of its buffers end as the lifeline says.
  const std::shared_ptr<gloo::Context>& context() const noexcept { return context_; }
  Lifeline& lifeline() noexcept { return lifeline_; }

  // After a failure: ends all connections and takes user memory away from Gloo's thread. 20 ms per connection at most.
  void close() noexcept;

 private:
  void connect(const Host& host);
  bool is_closed(int rank);

  Lifeline lifeline_;
  std::shared_ptr<gloo::transport::Device> device_;
  std::shared_ptr<gloo::transport::Context> pairs_;
  std::shared_ptr<gloo::Context> context_;
  std::unique_ptr<gloo::transport::UnboundBuffer> probe_;
};

}  // namespace ddprun::gloo_backend
