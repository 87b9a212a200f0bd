// What one rank shows to the others of its host: the layout of its area, and the rules of who writes and reads what.
//
// Only its owner writes into an area (but for `sleepers`). Every collective begins with one posting of each rank's
// mailbox; the two mailboxes of a rank alternate, so that one is written again only after every rank has posted the
// collective in between, which it does once it has read this one. `step` is counted up by each rank at each barrier
// within a collective; all ranks take the same number of barriers, as they decide by the same mailboxes. The slots'
// rules are with the staged allreduce (collectives.cpp).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "shm/allocation.hpp"
#include "shm/flags.hpp"

namespace ddprun::shm {

// Bytes of a vector that goes whole through the mailboxes, wherever it lies; of one that does so between two ranks
// because it does not lie in memory that both map; and of one chunk of a staged vector.
inline constexpr std::size_t kInline = 8 << 10;
inline constexpr std::size_t kWhole = 128 << 10;
inline constexpr std::size_t kChunk = 256 << 10;

// What a rank was called for: equal on all ranks.
struct Purpose {
  enum Kind : int32_t { allreduce, broadcast, allgather, reduce_scatter, barrier, exchange };
  Kind kind;
  int16_t dtype;
  int16_t op;
  uint64_t count;
  bool operator==(const Purpose&) const = default;
};

struct Mailbox {
  alignas(kLine) Word posted;
  Purpose purpose;
  alignas(64) Locations locations;     // of what lies in allocations,
  alignas(64) std::byte data[kWhole];  // or the vector itself
};

struct Area {
  alignas(kLine) std::atomic<uint32_t> sleepers{0};  // ranks that sleep on one of our words
  alignas(kLine) std::atomic<int32_t> gone{0};       // 1 + the rank that made us leave
  alignas(kLine) Word step;
  Mailbox mailboxes[2];
  alignas(4096) std::byte inputs[2][kChunk];
  std::byte outputs[2][kChunk];
};

}  // namespace ddprun::shm
