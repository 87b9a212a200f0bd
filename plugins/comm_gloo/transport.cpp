#include "transport.hpp"

#include <gloo/common/error.h>

namespace ddprun::gloo_backend {

std::string without_location(const std::string& text) {
  const auto end = text.find("] ");
  return text.starts_with('[') && end != std::string::npos ? text.substr(end + 2) : text;
}

InterruptibleBuffer::InterruptibleBuffer(ConnectionWatchdog& watchdog,
                                         std::unique_ptr<gloo::transport::UnboundBuffer> inner)
    : UnboundBuffer(inner->ptr, inner->size), watchdog_(watchdog), inner_(std::move(inner)) {
  watchdog_.add(this);
}

InterruptibleBuffer::~InterruptibleBuffer() {
  watchdog_.remove(this);
}

// The order matters: the watchdog notes an abort or a loss before it ends waits, and Gloo remembers an ended wait until
// the next one. So an event after the two checks below still ends the wait.
template <class Wait>
void InterruptibleBuffer::wait(const std::atomic<int>& peer, Wait&& wait_for) {
  constexpr std::chrono::milliseconds kDelivered(0);  // only what has arrived
  const int rank = peer;
  try {
    do {
      if (watchdog_.is_aborted()) throw ConnectionLost(rank, "aborted");
    } while (!wait_for(watchdog_.is_lost(rank) ? kDelivered : watchdog_.remaining()));
  } catch (const gloo::IoException& error) {
    const bool cut_short = watchdog_.is_lost(rank);
    throw ConnectionLost(rank, cut_short ? "the connection ended within a message" : without_location(error.what()));
  }
}

bool InterruptibleBuffer::waitRecv(int* rank, std::chrono::milliseconds) {
  wait(receives_from_, [&](std::chrono::milliseconds timeout) { return inner_->waitRecv(rank, timeout); });
  return true;
}

bool InterruptibleBuffer::waitSend(int* rank, std::chrono::milliseconds) {
  wait(sends_to_, [&](std::chrono::milliseconds timeout) { return inner_->waitSend(rank, timeout); });
  return true;
}

void InterruptibleBuffer::send(int to, uint64_t slot, size_t offset, size_t bytes) {
  sends_to_ = to;
  try {
    inner_->send(to, slot, offset, bytes);
  } catch (const gloo::IoException& error) {
    throw ConnectionLost(to, without_location(error.what()));
  }
}

void InterruptibleBuffer::recv(int from, uint64_t slot, size_t offset, size_t bytes) {
  receives_from_ = from;
  try {
    inner_->recv(from, slot, offset, bytes);
  } catch (const gloo::IoException& error) {
    throw ConnectionLost(from, without_location(error.what()));
  }
}

void InterruptibleBuffer::recv(std::vector<int>, uint64_t, size_t, size_t) {
  throw std::logic_error("comm_gloo does not receive from an unspecified rank");
}

void InterruptibleBuffer::end_waits(int peer) noexcept {
  if (peer == kAllPeers || receives_from_ == peer) inner_->abortWaitRecv();
  if (peer == kAllPeers || sends_to_ == peer) inner_->abortWaitSend();
}

InterruptibleContext::InterruptibleContext(ConnectionWatchdog& watchdog,
                                           std::shared_ptr<gloo::transport::Context> inner)
    : Context(inner->rank, inner->size), watchdog_(watchdog), inner_(std::move(inner)) {}

std::unique_ptr<gloo::transport::UnboundBuffer> InterruptibleContext::createUnboundBuffer(void* data, size_t bytes) {
  return std::make_unique<InterruptibleBuffer>(watchdog_, inner_->createUnboundBuffer(data, bytes));
}

}  // namespace ddprun::gloo_backend
