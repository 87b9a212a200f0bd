// Who talks to whom about what in a ring, in recursive doubling and in a binomial tree, as pure functions of (rank,
// size, step). No I/O, no allocation, no state; the same for every transport.
//
// Ranks are 0 .. size - 1, size >= 1; counts and offsets are in elements. Arguments outside these ranges are the
// caller's bug. Any thread.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace ddprun::topology {

// A piece of a vector.
struct Block {
  uint64_t offset = 0;
  uint64_t length = 0;
  constexpr bool operator==(const Block&) const = default;
};

// Block `index` of the `parts` blocks that a vector of `count` elements is cut into. Lengths differ by at most one,
// longer ones first; blocks are empty where there are fewer elements than blocks.
constexpr Block block(uint64_t count, int parts, int index) {
  const auto n = static_cast<uint64_t>(parts), i = static_cast<uint64_t>(index);
  const uint64_t length = count / n, longer = count % n;
  return {i * length + (i < longer ? i : longer), length + (i < longer ? 1 : 0)};
}

// Of a vector that is halved again and again: what `rank` keeps. Bit k of a rank says which half it keeps in round k.
struct Share {
  int rank = 0;
  int halvings = 0;

  // Of `count` elements: all after no halving.
  constexpr Block of(uint64_t count) const {
    Block kept{0, count};
    for (int round = 0; round < halvings; ++round) {
      const Block half = block(kept.length, 2, rank >> round & 1);
      kept = {kept.offset + half.offset, half.length};
    }
    return kept;
  }
};

// The ring of Patarasu and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 69
// (2009): each rank sends to next() and receives from previous(); a reduce-scatter of size - 1 steps leaves rank r with
// the complete block r, an allgather of size - 1 more steps spreads the blocks. Each rank sends 2 (size - 1) / size of
// the vector in all.
struct Ring {
  int rank = 0;
  int size = 1;

  constexpr int next() const { return wrapped(1); }
  constexpr int previous() const { return wrapped(-1); }
  // Steps of each of the two phases.
  constexpr int steps() const { return size - 1; }

  // Reduce-scatter, step 0 .. steps() - 1: the block to send, and the block that arrives and is reduced with one's own.
  constexpr int reduce_scatter_send(int step) const { return wrapped(-1 - step); }
  constexpr int reduce_scatter_receive(int step) const { return wrapped(-2 - step); }
  // Allgather, step 0 .. steps() - 1: the block to send, and the block that arrives and is complete.
  constexpr int allgather_send(int step) const { return wrapped(-step); }
  constexpr int allgather_receive(int step) const { return wrapped(-1 - step); }

 private:
  // rank + offset modulo size, for offsets down to -size - 1.
  constexpr int wrapped(int offset) const { return (rank + offset + 2 * size) % size; }
};

// Ranks in a fixed array: a binomial tree has at most 31 children at a node.
struct Ranks {
  std::array<int, 31> at = {};
  int count = 0;
  constexpr const int* begin() const { return at.data(); }
  constexpr const int* end() const { return at.data() + count; }
};

// Recursive doubling, as in Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in
// MPICH", IJHPCA 19 (2005): in round k, two ranks whose numbers differ only in bit k exchange all that they have. This
// needs a power of two. Each rank beyond the largest power of two first sends its data to a partner, and receives the
// result at the end.
struct Doubling {
  int rank = 0;
  int size = 1;

  // The ranks that exchange: the largest power of two within size.
  constexpr int core() const { return static_cast<int>(std::bit_floor(static_cast<unsigned>(size))); }
  // log2(core()).
  constexpr int rounds() const { return std::bit_width(static_cast<unsigned>(core())) - 1; }
  // The rank to exchange with in round 0 .. rounds() - 1, for ranks below core().
  constexpr int peer(int round) const { return rank ^ (1 << round); }
  // The rank beyond core() that works with this rank, or the reverse; -1 if there is none.
  constexpr int partner() const {
    if (rank >= core()) return rank - core();
    return rank + core() < size ? rank + core() : -1;
  }

  // The same exchanges halve a vector first (Rabenseifner's algorithm, same paper): in each round, ranks below core()
  // keep one half of what they hold, reduce it with the peer's, and give the other half away; then, with the rounds in
  // reverse order, they put the halves together again. As few bytes as the ring, in 2 rounds() steps.
  // What this rank keeps in this round, and what its peer keeps of what both had before.
  constexpr Share kept(int round) const { return {rank, round + 1}; }
  constexpr Share given(int round) const { return {peer(round), round + 1}; }
};

// The binomial tree of the same authors. Counted from the root, node v hangs below v without its lowest set bit. A
// broadcast goes down and a reduction comes up in rounds() rounds; every rank but the root receives, or sends, exactly
// once.
struct Tree {
  int rank = 0;
  int size = 1;
  int root = 0;

  // ceil(log2(size)).
  constexpr int rounds() const { return std::bit_width(static_cast<unsigned>(size - 1)); }
  // Messages between the root and this rank; at most rounds().
  constexpr int depth() const { return std::popcount(position()); }
  // -1 at the root.
  constexpr int parent() const {
    const unsigned at = position();
    return at == 0 ? -1 : rank_at(at & (at - 1));
  }
  // Smallest subtree first: the order in which a reduction finds them ready. A broadcast serves them from the back, so
  // that the largest subtree starts first.
  constexpr Ranks children() const {
    const unsigned at = position(), total = static_cast<unsigned>(size);
    Ranks found;
    for (unsigned bit = 1; (at & bit) == 0 && bit < total && at + bit < total; bit <<= 1) {
      found.at[static_cast<unsigned>(found.count++)] = rank_at(at + bit);
    }
    return found;
  }

 private:
  constexpr unsigned position() const { return static_cast<unsigned>(rank >= root ? rank - root : rank - root + size); }
  constexpr int rank_at(unsigned position) const {
    return static_cast<int>((position + static_cast<unsigned>(root)) % static_cast<unsigned>(size));
  }
};

}  // namespace ddprun::topology
