// comm.options.busy_poll: Gloo's transport with waits that never sleep. Whoever waits looks at all its connections
// again and again, and reads what has come itself; collectives run on it unchanged, as on transport.hpp's.
#pragma once

#include <gloo/transport/context.h>
#include <gloo/transport/unbound_buffer.h>
#include <poll.h>

#include <memory>
#include <vector>

#include "connection_watchdog.hpp"
#include "polling_link.hpp"

namespace ddprun::gloo_backend {

// The connections of a rank. One thread.
class PollingLinks {
 public:
  // All pairs are connected and in synchronous mode; sockets[rank] is that of the pair, none for this rank. The
  // watchdog and the pairs outlive this.
  PollingLinks(ConnectionWatchdog& watchdog, gloo::transport::Context& pairs, const std::vector<Descriptor>& sockets);

  // Throw ConnectionLost.
  void send(int to, const std::byte* from, std::size_t bytes, int* done);
  void receive(int from, std::byte* to, std::size_t bytes, int* done);
  // Moves messages, of whatever buffer, until *done is above 0; then takes one off it. `peer` is blamed for an abort.
  void wait(int* done, int peer);

 private:
  template <class Step>
  void step(int peer, Step&& step_on);
  void turn();

  ConnectionWatchdog& watchdog_;
  std::vector<std::unique_ptr<PollingLink>> links_;  // by rank; none for this one
  std::vector<int> sockets_;                         // likewise
  std::vector<pollfd> polled_;                       // likewise; -1 while nothing is expected
};

// Every rank's messages to another one are received in the order in which they were sent: slots are not looked at.
class PollingContext final : public gloo::transport::Context {
 public:
  PollingContext(std::shared_ptr<gloo::transport::Context> pairs, std::unique_ptr<PollingLinks> links);
  std::unique_ptr<gloo::transport::Pair>& getPair(int rank) override { return pairs_->getPair(rank); }
  std::unique_ptr<gloo::transport::Pair>& createPair(int rank) override { return pairs_->createPair(rank); }
  std::unique_ptr<gloo::transport::UnboundBuffer> createUnboundBuffer(void* data, std::size_t bytes) override;

 private:
  const std::shared_ptr<gloo::transport::Context> pairs_;
  const std::unique_ptr<PollingLinks> links_;
};

}  // namespace ddprun::gloo_backend
