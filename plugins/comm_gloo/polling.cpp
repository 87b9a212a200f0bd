#include "polling.hpp"

#include <gloo/common/error.h>
#include <sched.h>

#include <algorithm>

#include "transport.hpp"

namespace ddprun::gloo_backend {
namespace {

using gloo::transport::UnboundBuffer;

// In each direction there is one peer at a time. What is sent and received is waited for before it goes, or the mesh is
// closed.
class PollingBuffer final : public UnboundBuffer {
 public:
  PollingBuffer(PollingLinks& links, void* data, std::size_t bytes) : UnboundBuffer(data, bytes), links_(links) {}

  void send(int to, uint64_t, std::size_t offset, std::size_t bytes) override {
    sends_to_ = to;
    links_.send(to, static_cast<std::byte*>(ptr) + offset, length(offset, bytes), &sent_);
  }
  void recv(int from, uint64_t, std::size_t offset, std::size_t bytes) override {
    receives_from_ = from;
    links_.receive(from, static_cast<std::byte*>(ptr) + offset, length(offset, bytes), &received_);
  }
  void recv(std::vector<int>, uint64_t, std::size_t, std::size_t) override {
    throw std::logic_error("comm_gloo does not receive from whoever comes first");
  }
  bool waitSend(int* rank, std::chrono::milliseconds) override {
    links_.wait(&sent_, sends_to_);
    if (rank != nullptr) *rank = sends_to_;
    return true;
  }
  bool waitRecv(int* rank, std::chrono::milliseconds) override {
    links_.wait(&received_, receives_from_);
    if (rank != nullptr) *rank = receives_from_;
    return true;
  }
  // The watchdog ends waits by ending the connections.
  void abortWaitRecv() override {}
  void abortWaitSend() override {}

 private:
  std::size_t length(std::size_t offset, std::size_t bytes) const { return std::min(bytes, size - offset); }

  PollingLinks& links_;
  int sends_to_ = -1, receives_from_ = -1;
  int sent_ = 0, received_ = 0;
};

}  // namespace

PollingLinks::PollingLinks(ConnectionWatchdog& watchdog, gloo::transport::Context& pairs, const std::vector<Descriptor>& sockets)
    : watchdog_(watchdog), links_(sockets.size()), polled_(sockets.size()) {
  for (std::size_t rank = 0; rank < sockets.size(); ++rank) {
    sockets_.push_back(sockets[rank].get());
    if (sockets_[rank] >= 0) links_[rank] = std::make_unique<PollingLink>(*pairs.getPair(static_cast<int>(rank)));
  }
}

template <class Step>
void PollingLinks::step(int peer, Step&& step_on) {
  try {
    step_on(*links_[static_cast<std::size_t>(peer)]);
  } catch (const gloo::IoException& error) {
    throw ConnectionLost(peer, without_location(error.what()));
  }
}

void PollingLinks::send(int to, const std::byte* from, std::size_t bytes, int* done) {
  step(to, [&](PollingLink& link) { link.send(from, bytes, done); });
}

void PollingLinks::receive(int from, std::byte* to, std::size_t bytes, int* done) {
  step(from, [&](PollingLink& link) { link.receive(to, bytes, done); });
}

void PollingLinks::wait(int* done, int peer) {
  while (*done == 0) {
    if (watchdog_.is_aborted()) throw ConnectionLost(peer, "aborted");
    if (watchdog_.is_over()) throw ConnectionLost(peer, "nothing came");
    turn();
  }
  --*done;
}

// The links that nothing is expected of are left alone: what they bring may belong to a later collective.
void PollingLinks::turn() {
  for (std::size_t rank = 0; rank < links_.size(); ++rank) {
    polled_[rank] = {links_[rank] && links_[rank]->is_waiting() ? sockets_[rank] : -1, POLLIN, 0};
  }
  if (poll(polled_.data(), polled_.size(), 0) <= 0) {
    sched_yield();  // the peer may need this core
    return;
  }
  for (std::size_t rank = 0; rank < links_.size(); ++rank) {
    if (polled_[rank].revents != 0) step(static_cast<int>(rank), [](PollingLink& link) { link.read(); });
  }
}

PollingContext::PollingContext(std::shared_ptr<gloo::transport::Context> pairs, std::unique_ptr<PollingLinks> links)
    : Context(pairs->rank, pairs->size), pairs_(std::move(pairs)), links_(std::move(links)) {}

std::unique_ptr<UnboundBuffer> PollingContext::createUnboundBuffer(void* data, std::size_t bytes) {
  return std::make_unique<PollingBuffer>(*links_, data, bytes);
}

}  // namespace ddprun::gloo_backend
