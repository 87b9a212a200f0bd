// One connection of a polling mesh: messages of any size, each way in order, over a pair of Gloo in synchronous mode.
// There Gloo reads and writes on the calling thread, which saves the way through a thread of its own; but it blocks
// while it does, and offers the mode only to its older buffers, which have a fixed place at the receiver. So messages
// go in pieces into a ring of staging memory at the receiver, and never more of them than sockets take without a
// reader: two ranks that send to each other at once do not wait for each other.
#pragma once

#include <gloo/transport/buffer.h>
#include <gloo/transport/pair.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>

namespace ddprun::gloo_backend {

// One thread. Memory of a message stays the caller's, and in place until its count has gone up. All functions throw
// what Gloo throws when the connection ends.
class PollingLink {
 public:
  // A pair in synchronous mode, which outlives this.
  explicit PollingLink(gloo::transport::Pair& pair);

  // The n-th message that is sent fills the n-th that is received, which must be of the same size; *done goes up by one
  // when it has. A send is done when the memory may change.
  void send(const std::byte* from, std::size_t bytes, int* done);
  void receive(std::byte* to, std::size_t bytes, int* done);
  // True while a message has to be waited for: then read() whenever the socket has something.
  bool is_waiting() const { return !sending_.empty() || !receiving_.empty(); }
  // Takes one piece off the socket, or one word that the peer's ring has room again. Blocks where none has come.
  void read();

 private:
  static constexpr std::size_t kPiece = 128 * 1024;
  static constexpr std::size_t kGap = 64;  // counted on top of each piece, so that small ones are bounded too
  static constexpr std::size_t kRing = 2 * (kPiece + kGap);

  // What lies at the receiver. Pieces start within the ring; the last one may reach beyond its end.
  struct Staging {
    uint64_t freed = 0;  // bytes of the other end's ring that are free again, counted from the first
    alignas(kGap) std::byte ring[kRing + kPiece];
  };
  struct Outgoing {
    const std::byte* from;
    std::size_t left;
    int* done;
  };
  struct Incoming {
    std::byte* to;
    std::size_t left;
    int* done;
  };

  static std::size_t piece_of(std::size_t left);
  static std::size_t room_of(std::size_t piece);  // that it takes in the ring
  void write(const void* from, std::size_t bytes, std::size_t to);
  void send_pieces();
  void take_pieces();

  const std::unique_ptr<Staging> here_ = std::make_unique<Staging>();
  std::unique_ptr<gloo::transport::Buffer> in_, out_;
  std::deque<Outgoing> sending_;
  std::deque<Incoming> receiving_;
  uint64_t sent_ = 0, known_freed_ = 0;  // of the peer's ring
  uint64_t taken_ = 0, told_freed_ = 0;  // of this one's
  int arrived_ = 0;                      // pieces in the ring
};

}  // namespace ddprun::gloo_backend
