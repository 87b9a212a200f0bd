// Gloo's transport with interruptible waits: a transport::Context whose waits the watchdog can end. Gloo's own
// algorithms run on it unchanged.
#pragma once

#include <gloo/transport/context.h>
#include <gloo/transport/unbound_buffer.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>

#include "connection_watchdog.hpp"

namespace ddprun::gloo_backend {

// The connection to a peer ended. The deadline and an abort also end connections: the communicator distinguishes them.
class ConnectionLost : public std::runtime_error {
 public:
  ConnectionLost(int peer, const std::string& why) : std::runtime_error(why), peer_(peer) {}
  int peer() const noexcept { return peer_; }

 private:
  int peer_;
};

// Gloo's error message without its "[file:line] ".
std::string without_location(const std::string& text);

// Wraps a buffer of Gloo. Each direction has one peer at a time; wait for all its messages before using another peer.
// Ignores the timeouts that are passed in: the watchdog has the collective's deadline. One thread.
class InterruptibleBuffer final : public gloo::transport::UnboundBuffer, public Interruptible {
 public:
  InterruptibleBuffer(ConnectionWatchdog& watchdog, std::unique_ptr<gloo::transport::UnboundBuffer> inner);
  ~InterruptibleBuffer() override;

  // Throw ConnectionLost.
  using gloo::transport::UnboundBuffer::waitRecv;
  using gloo::transport::UnboundBuffer::waitSend;
  bool waitRecv(int* rank, std::chrono::milliseconds timeout) override;
  bool waitSend(int* rank, std::chrono::milliseconds timeout) override;
  void send(int to, uint64_t slot, size_t offset, size_t bytes) override;
  void recv(int from, uint64_t slot, size_t offset, size_t bytes) override;
  // Not supported: throws std::logic_error. No algorithm here receives from an unspecified rank.
  void recv(std::vector<int> from, uint64_t slot, size_t offset, size_t bytes) override;

  void abortWaitRecv() override { inner_->abortWaitRecv(); }
  void abortWaitSend() override { inner_->abortWaitSend(); }
  void end_waits(int peer) noexcept override;

 private:
  template <class Wait>
  void wait(const std::atomic<int>& peer, Wait&& wait_for);

  ConnectionWatchdog& watchdog_;
  const std::unique_ptr<gloo::transport::UnboundBuffer> inner_;
  std::atomic<int> sends_to_{kAllPeers};
  std::atomic<int> receives_from_{kAllPeers};
};

// Both references outlive it.
class InterruptibleContext final : public gloo::transport::Context {
 public:
  InterruptibleContext(ConnectionWatchdog& watchdog, std::shared_ptr<gloo::transport::Context> inner);
  std::unique_ptr<gloo::transport::Pair>& getPair(int rank) override { return inner_->getPair(rank); }
  std::unique_ptr<gloo::transport::Pair>& createPair(int rank) override { return inner_->createPair(rank); }
  std::unique_ptr<gloo::transport::UnboundBuffer> createUnboundBuffer(void* data, size_t bytes) override;

 private:
  ConnectionWatchdog& watchdog_;
  const std::shared_ptr<gloo::transport::Context> inner_;
};

}  // namespace ddprun::gloo_backend
