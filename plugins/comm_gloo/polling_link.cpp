#include "polling_link.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

namespace ddprun::gloo_backend {

// The one slot at each end: the peer's staging. Gloo sends from an offset into a buffer, and messages lie anywhere, so
// the outgoing buffer is all of memory.
PollingLink::PollingLink(gloo::transport::Pair& pair)
    : in_(pair.createRecvBuffer(0, here_.get(), sizeof(Staging))),
      out_(pair.createSendBuffer(0, nullptr, std::numeric_limits<std::size_t>::max())) {}

std::size_t PollingLink::piece_of(std::size_t left) {
  return std::min(left, kPiece);
}

std::size_t PollingLink::room_of(std::size_t piece) {
  return (piece + kGap - 1) / kGap * kGap + kGap;
}

void PollingLink::write(const void* from, std::size_t bytes, std::size_t to) {
  out_->send(reinterpret_cast<std::size_t>(from), bytes, to);
  out_->waitSend();  // it has been sent; this only counts
}

void PollingLink::send(const std::byte* from, std::size_t bytes, int* done) {
  sending_.push_back({from, bytes, done});
  send_pieces();
}

void PollingLink::receive(std::byte* to, std::size_t bytes, int* done) {
  receiving_.push_back({to, bytes, done});
  take_pieces();
}

void PollingLink::send_pieces() {
  while (!sending_.empty()) {
    Outgoing& message = sending_.front();
    const std::size_t piece = piece_of(message.left);
    if (sent_ + room_of(piece) - known_freed_ > kRing) return;
    write(message.from, piece, offsetof(Staging, ring) + sent_ % kRing);
    sent_ += room_of(piece);
    message.from += piece;
    message.left -= piece;
    if (message.left > 0) continue;
    ++*message.done;
    sending_.pop_front();
  }
}

void PollingLink::take_pieces() {
  for (; arrived_ > 0 && !receiving_.empty(); --arrived_) {
    Incoming& message = receiving_.front();
    const std::size_t piece = piece_of(message.left);
    if (piece > 0) std::memcpy(message.to, here_->ring + taken_ % kRing, piece);
    taken_ += room_of(piece);
    message.to += piece;
    message.left -= piece;
    if (message.left > 0) continue;
    ++*message.done;
    receiving_.pop_front();
  }
  // Half the ring at a time: with what may still be untold, there is room for a piece.
  if (taken_ - told_freed_ < kRing / 2) return;
  told_freed_ = taken_;
  write(&told_freed_, sizeof told_freed_, offsetof(Staging, freed));
}

void PollingLink::read() {
  in_->waitRecv();
  if (here_->freed != known_freed_) {
    known_freed_ = here_->freed;
    send_pieces();
  } else {
    ++arrived_;
    take_pieces();
  }
}

}  // namespace ddprun::gloo_backend
