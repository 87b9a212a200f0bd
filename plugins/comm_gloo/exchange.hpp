// How a rank sends a vector and receives another one at the same time, in chunks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "algorithms.hpp"
#include "reduction/reduce.hpp"

namespace ddprun::gloo_backend {

// A part of a vector, in bytes.
struct Outgoing {
  int to;
  const void* data;
  uint64_t bytes;
};

// Calls body(first byte, number of bytes) for each chunk of `bytes` bytes. Chunks end between two elements.
template <class Body>
void for_chunks(const Run& run, uint64_t bytes, Body&& body) {
  const uint64_t chunk = run.mesh.chunk();
  for (uint64_t at = 0; at < bytes; at += chunk) body(at, std::min(chunk, bytes - at));
}

// Sends `out`, and calls receive(first byte, number of bytes) for each chunk of the `in_bytes` bytes that arrive.
// receive must call Run::receive; it may overwrite these bytes of `out`, because they have been sent. All ranks may
// send first, because the chunks that no rank has read yet fit into the buffers of a connection (Mesh::chunk).
template <class Receive>
void exchange(const Run& run, const Outgoing& out, uint64_t in_bytes, Receive&& receive) {
  uint64_t sent = 0;
  const auto send_one = [&] {
    const uint64_t bytes = std::min(run.mesh.chunk(), out.bytes - sent);
    if (bytes > 0) run.send(out.to, static_cast<const std::byte*>(out.data) + sent, bytes);
    sent += bytes;
  };
  send_one();  // one chunk ahead, so that the peer's next chunk is on its way while this rank reduces
  for_chunks(run, in_bytes, [&](uint64_t at, uint64_t bytes) {
    send_one();
    receive(at, bytes);
  });
  while (sent < out.bytes) send_one();
}

// The same, where the bytes that arrive from that rank go to `in`.
inline void exchange(const Run& run, const Outgoing& out, int from, std::byte* in, uint64_t in_bytes) {
  exchange(run, out, in_bytes, [&](uint64_t at, uint64_t bytes) { run.receive(from, in + at, bytes); });
}

// Receives vectors of partial sums.
class Reduction {
 public:
  Reduction(const Run& run, const Collective& call)
      : run_(run),
        element_(size_of(call.dtype)),
        reduce_(reduction::reduce_function(call.dtype, call.op)),
        arrived_(run.arrived.of_size(run.mesh.chunk())) {}

  // Receives a chunk, and computes to[i] = mine[i] op the chunk's element i. `to` may be `mine`. The lower rank's
  // operand comes first, so that two ranks that exchange their vectors get the same bits.
  void receive(int from, void* to, const void* mine, uint64_t bytes) const {
    run_.receive(from, arrived_, bytes);
    const bool is_mine_first = run_.rank < from;
    reduce_(to, is_mine_first ? mine : arrived_, is_mine_first ? arrived_ : mine, bytes / element_);
  }

 private:
  const Run& run_;
  const uint64_t element_;
  const reduction::Reduce reduce_;
  std::byte* const arrived_;
};

}  // namespace ddprun::gloo_backend
