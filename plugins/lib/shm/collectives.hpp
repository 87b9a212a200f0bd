// The collectives of ranks that map one another's areas: plain memory and atomics. area.hpp has the rules.
//
// An allreduce has two algorithms; all ranks use the same one. reduce_to_first() uses the same two, but the others do
// not get the result.
//   direct  send and recv of every rank are in memory from alloc. Each rank reduces its slice of all ranks' send into
//           all ranks' recv, between the posting and a barrier. No byte is copied.
//   staged  for vectors anywhere. By size:
//           up to kInline bytes, each rank posts its vector in its mailbox and reduces the vectors of all ranks;
//           between two ranks the same up to kWhole bytes: adding all of it on both costs less than a second barrier
//           and copying out; else in chunks of kChunk. Each rank copies what it does not reduce into its input slot;
//           barrier; it reduces its slice into its recv and its output slot; barrier; it copies the others' slices out.
// A broadcast copies from the root's vector if that is in memory from alloc, else through the root's slots.
// Every element is reduced once, or from the same operands, in the order of reduction::reduce_all. So all ranks get the
// same bits, in every run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ddprun/plugin/comm_plugin.hpp"
#include "shm/allocation.hpp"
#include "shm/area.hpp"
#include "shm/wait.hpp"

namespace ddprun::shm {

// `automatic` is direct if all vectors are in memory from alloc and larger than kInline, else staged.
enum class Algorithm { automatic, direct, staged };

class Collectives {
 public:
  // The areas of ranks[0], ranks[1], ...; this rank's at `me`. `memory` has the same ranks in the same order.
  Collectives(std::size_t me, std::vector<int> ranks, std::vector<Area*> areas, const SharedMemory& memory);

  // All are collective. They throw what Waiter::until throws, after which nothing may be called any more, or
  // CommStatus::mismatch on all ranks alike.
  // Returns the algorithm that served: direct or staged. Throws CommStatus::unsupported, on all ranks alike, if direct
  // was requested and a rank's vectors are in other memory; the group can continue.
  Algorithm allreduce(const Collective& call, Algorithm asked, Waiter& waiter);
  // As allreduce, but only the first rank of the group gets the result. The recv of the others is not written.
  void reduce_to_first(const Collective& call, Waiter& waiter);
  void broadcast(void* data, uint64_t bytes, std::size_t root, Waiter& waiter);
  void allgather(const Collective& call, Waiter& waiter);
  void reduce_scatter(const Collective& call, Waiter& waiter);
  void barrier_of_all(Waiter& waiter);
  // The arrays are by index in `ranks`. Throws CommStatus::mismatch on one rank if another one sends it another number
  // of bytes; after that nothing may be called any more. Throws CommStatus::unsupported if there are too many ranks.
  void exchange(const Exchange& call, Waiter& waiter);
  // The rank that an exchange waits for; -1 outside of one.
  int awaited() const noexcept { return awaited_; }
  // Copies at most kInline bytes of each rank into `all`, in rank order.
  void exchange(const void* mine, std::size_t bytes, void* all, Waiter& waiter);

 private:
  struct Range {  // bytes of a vector
    uint64_t begin, end;
    uint64_t bytes() const { return end - begin; }
  };
  struct Chunk {
    uint64_t begin;  // byte
    uint64_t count;  // elements
    uint64_t element;
    uint64_t slot;
  };

  // Puts, or takes, the piece of a block that begins with this byte.
  void put(std::size_t to, const Block& block, uint64_t at, Waiter& waiter);
  void take(std::size_t from, const Block& block, uint64_t at, Waiter& waiter);
  void wait(std::size_t member, Word& word, uint32_t number, Waiter& waiter);
  uint64_t piece_bytes() const;
  std::byte* piece(std::size_t owner, std::size_t other, uint32_t number) const;

  // Begins a collective. The caller fills in the returned mailbox; post_and_wait() posts it and waits for all others.
  Mailbox& begin(const Purpose& purpose);
  void post_and_wait(Waiter& waiter);
  Mailbox& mailbox(std::size_t member) const { return areas_[member]->mailboxes[collectives_ % 2]; }
  void barrier(Waiter& waiter);
  // The part of a vector that `member` reduces.
  Range slice(std::size_t member, uint64_t count, uint64_t element) const;

  Algorithm reduce_all(const Collective& call, Purpose::Kind kind, Algorithm asked, Waiter& waiter);
  // Whether `member` gets the result.
  bool is_target(std::size_t member) const { return !to_first_ || member == 0; }
  [[noreturn]] void refuse_direct() const;
  void reduce_posted(const Collective& call);
  void reduce_direct(const Collective& call, Waiter& waiter);
  // first_is_in: this rank's first chunk is in its slot. all_are_in: so are the others'.
  void reduce_staged(const Collective& call, bool first_is_in, bool all_are_in, Waiter& waiter);
  Chunk chunk(const Collective& call, uint64_t number) const;
  void copy_in(const Collective& call, const Chunk& chunk);
  void reduce_chunk(const Collective& call, const Chunk& chunk);
  void copy_out(const Collective& call, const Chunk& chunk) const;
  // Reduces `count` elements of all from_ into all to_; if the op divides, through the first of to_.
  void reduce(const Collective& call, uint64_t count);

  const std::size_t me_;
  const std::vector<int> ranks_;
  const std::vector<Area*> areas_;
  const SharedMemory& memory_;
  uint32_t collectives_ = 0;  // so far
  uint32_t steps_ = 0;
  std::vector<uint32_t> sent_, taken_;  // pieces, by index
  int awaited_ = -1;
  bool to_first_ = false;          // the current call is reduce_to_first
  std::vector<const void*> from_;  // kept between calls for their memory
  std::vector<void*> to_;
};

}  // namespace ddprun::shm
