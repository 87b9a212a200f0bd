// The memory that one rank shows to the others of its host: its layout, and who writes and reads what.
//
// Only its owner writes into an area (except `sleepers`). In every collective each rank posts its mailbox once. A
// rank's two mailboxes alternate: it writes one again only after every rank has posted the collective in between, and a
// rank posts that one only after it has read this one. Each rank increments `step` at each barrier within a collective;
// all ranks have the same number of barriers, because they decide by the same mailboxes. collectives.hpp has the rules
// of the slots (staged allreduce).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "shm/allocation.hpp"
#include "shm/flags.hpp"

namespace ddprun::shm {

// In bytes. A vector of up to kInline always goes through the mailboxes. Between two ranks, one of up to kWhole does
// too, if it is not in memory that both map. kChunk is a chunk of a staged vector.
inline constexpr std::size_t kInline = 8 << 10;
inline constexpr std::size_t kWhole = 128 << 10;
inline constexpr std::size_t kChunk = 256 << 10;
inline constexpr std::size_t kMostLanes = 256;

// The collective that a rank was called for: equal on all ranks.
struct Purpose {
  enum Kind : int32_t { allreduce, reduce, broadcast, allgather, reduce_scatter, barrier, exchange };
  Kind kind;
  int16_t dtype;
  int16_t op;
  uint64_t count;
  bool operator==(const Purpose&) const = default;
};

struct Mailbox {
  alignas(kLine) Word posted;
  Purpose purpose;
  alignas(64) Locations locations;     // of vectors in allocations,
  alignas(64) std::byte data[kWhole];  // or the vector itself
};

// What the owner of an area and one other rank tell each other in exchanges: numbers of pieces, from 1.
struct Lane {
  alignas(kLine) Word sent;   // the last piece that is there for that rank
  uint64_t left[2];           // bytes of the block from that piece on, by number % 2
  alignas(kLine) Word taken;  // the last piece that the owner has taken from that rank
};

struct Area {
  alignas(kLine) std::atomic<uint32_t> sleepers{0};  // ranks that sleep on one of this rank's words
  alignas(kLine) std::atomic<int32_t> gone{0};       // 1 + the rank that made this one leave; 0: not left
  alignas(kLine) Word step;
  Mailbox mailboxes[2];
  alignas(4096) std::byte inputs[2][kChunk];
  std::byte outputs[2][kChunk];
  Lane lanes[kMostLanes];                  // one for each other rank
  alignas(4096) std::byte pieces[kChunk];  // two for each of them
};

}  // namespace ddprun::shm
