// topology.hpp, without a network: all ranks of a world are simulated in arrays.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "reduction/topology.hpp"

namespace {

using ddprun::topology::block;
using ddprun::topology::Block;
using ddprun::topology::Doubling;
using ddprun::topology::Ring;
using ddprun::topology::Share;
using ddprun::topology::Tree;
using Vector = std::vector<int64_t>;

bool holds(const char* what, auto property) {
  CAPTURE(what);
  return rc::check(what, property);
}

// One vector of `count` numbers for each rank.
std::vector<Vector> inputs(int size, std::size_t count) {
  std::vector<Vector> ranks;
  for (int rank = 0; rank < size; ++rank)
    ranks.push_back(*rc::gen::container<Vector>(count, rc::gen::inRange(-999, 999)));
  return ranks;
}

Vector sum_of(const std::vector<Vector>& ranks) {
  Vector total(ranks[0].size());
  for (const auto& rank : ranks) std::transform(rank.begin(), rank.end(), total.begin(), total.begin(), std::plus<>());
  return total;
}

// One step of a ring phase. All ranks send at the same time, so they send the values from before the step.
template <class Sent, class Received, class Arrive>
void ring_step(std::vector<Vector>& ranks, Sent sent, Received received, Arrive arrive) {
  const auto before = ranks;
  const int size = static_cast<int>(ranks.size());
  for (int rank = 0; rank < size; ++rank) {
    const Ring ring{rank, size}, sender{ring.previous(), size};
    RC_ASSERT(sender.next() == rank);
    RC_ASSERT(sent(sender) == received(ring));
    const auto at = block(before[0].size(), size, received(ring));
    for (uint64_t i = at.offset; i < at.offset + at.length; ++i) {
      arrive(ranks[static_cast<std::size_t>(rank)][i], before[static_cast<std::size_t>(ring.previous())][i]);
    }
  }
}

void reduce_scatter(std::vector<Vector>& ranks) {
  for (int step = 0; step < Ring{0, static_cast<int>(ranks.size())}.steps(); ++step) {
    ring_step(
        ranks, [&](const Ring& r) { return r.reduce_scatter_send(step); },
        [&](const Ring& r) { return r.reduce_scatter_receive(step); },
        [](int64_t& mine, int64_t theirs) { mine += theirs; });
  }
}

void allgather(std::vector<Vector>& ranks) {
  for (int step = 0; step < Ring{0, static_cast<int>(ranks.size())}.steps(); ++step) {
    ring_step(
        ranks, [&](const Ring& r) { return r.allgather_send(step); },
        [&](const Ring& r) { return r.allgather_receive(step); }, [](int64_t& mine, int64_t theirs) { mine = theirs; });
  }
}

int world() {
  return *rc::gen::inRange(1, 41);
}
std::size_t elements() {
  return *rc::gen::inRange<std::size_t>(0, 131);
}

TEST_CASE("blocks divide a vector without gap or overlap, and differ by at most one element") {
  CHECK(holds("blocks", [] {
    const auto count = *rc::gen::inRange<uint64_t>(0, 1'000'000'000'000);
    const int parts = *rc::gen::inRange(1, 257);
    uint64_t end = 0;
    for (int i = 0; i < parts; ++i) {
      const auto piece = block(count, parts, i);
      RC_ASSERT(piece.offset == end);
      RC_ASSERT(piece.length - count / static_cast<uint64_t>(parts) <= 1);
      end += piece.length;
    }
    RC_ASSERT(end == count);
  }));
}

TEST_CASE("after a ring's reduce-scatter rank r has the complete block r") {
  CHECK(holds("reduce-scatter", [] {
    const int size = world();
    auto ranks = inputs(size, elements());
    const auto total = sum_of(ranks);
    reduce_scatter(ranks);
    for (int rank = 0; rank < size; ++rank) {
      const auto mine = block(total.size(), size, rank);
      for (uint64_t i = mine.offset; i < mine.offset + mine.length; ++i) {
        RC_ASSERT(ranks[static_cast<std::size_t>(rank)][i] == total[i]);
      }
    }
  }));
}

TEST_CASE("after a ring's two phases every rank has the whole sum") {
  CHECK(holds("ring allreduce", [] {
    auto ranks = inputs(world(), elements());
    const auto total = sum_of(ranks);
    reduce_scatter(ranks);
    allgather(ranks);
    for (const auto& rank : ranks) RC_ASSERT(rank == total);
  }));
}

TEST_CASE("a tree's parents and children agree, and a broadcast reaches every rank once") {
  CHECK(holds("tree broadcast", [] {
    const int size = *rc::gen::inRange(1, 600), root = *rc::gen::inRange(0, size);
    std::vector<int> reached(static_cast<std::size_t>(size));
    std::vector<int> pending = {root};
    while (!pending.empty()) {
      const int rank = pending.back();
      pending.pop_back();
      ++reached[static_cast<std::size_t>(rank)];
      for (const int child : Tree{rank, size, root}.children()) {
        RC_ASSERT((Tree{child, size, root}.parent() == rank));
        pending.push_back(child);
      }
    }
    RC_ASSERT((Tree{root, size, root}.parent() == -1));
    RC_ASSERT(reached == std::vector<int>(static_cast<std::size_t>(size), 1));
  }));
}

TEST_CASE("a tree is no deeper than the logarithm of its size, rounded up, and its root has that many children") {
  CHECK(holds("tree depth", [] {
    const int size = *rc::gen::inRange(1, 5000), root = *rc::gen::inRange(0, size), rank = *rc::gen::inRange(0, size);
    const Tree tree{rank, size, root};
    int rounds = 0;
    while ((1 << rounds) < size) ++rounds;
    RC_ASSERT(tree.rounds() == rounds);
    RC_ASSERT((Tree{root, size, root}.children().count == rounds));
    int steps = 0;
    for (int at = rank; at != root; at = Tree{at, size, root}.parent()) ++steps;
    RC_ASSERT(steps == tree.depth());
    RC_ASSERT(steps <= rounds);
  }));
}

TEST_CASE("a tree lists its children with the smallest subtree first") {
  constexpr Tree tree{5, 13, 5};
  constexpr auto children = tree.children();
  const std::vector<int> found(children.begin(), children.end());
  CHECK(found == std::vector<int>{6, 7, 9, 0});
}

// Moves `part` of each rank's peer into each rank below core(), all at the same time.
template <class Part, class Arrive>
void exchange(std::vector<Vector>& ranks, int round, Part part, Arrive arrive) {
  const auto before = ranks;
  const int size = static_cast<int>(ranks.size());
  for (int rank = 0; rank < Doubling{0, size}.core(); ++rank) {
    const Doubling order{rank, size};
    const int peer = order.peer(round);
    RC_ASSERT((Doubling{peer, size}.peer(round) == rank));
    const Block at = part(order);
    for (uint64_t i = at.offset; i < at.offset + at.length; ++i) {
      arrive(ranks[static_cast<std::size_t>(rank)][i], before[static_cast<std::size_t>(peer)][i]);
    }
  }
}

// From the ranks beyond core() to their partners, or back.
template <class Arrive>
void with_partners(std::vector<Vector>& ranks, Arrive arrive) {
  const int size = static_cast<int>(ranks.size());
  for (int rank = Doubling{0, size}.core(); rank < size; ++rank) {
    const int partner = Doubling{rank, size}.partner();
    RC_ASSERT((Doubling{partner, size}.partner() == rank));
    arrive(ranks[static_cast<std::size_t>(rank)], ranks[static_cast<std::size_t>(partner)]);
  }
}

TEST_CASE("after halving and doubling every rank has the whole sum") {
  CHECK(holds("halving and doubling", [] {
    auto ranks = inputs(world(), elements());
    const auto total = sum_of(ranks);
    const uint64_t count = total.size();
    const Doubling order{0, static_cast<int>(ranks.size())};
    with_partners(ranks, [](const Vector& beyond, Vector& partner) {
      std::transform(beyond.begin(), beyond.end(), partner.begin(), partner.begin(), std::plus<>());
    });
    for (int round = 0; round < order.rounds(); ++round) {
      exchange(
          ranks, round, [&](const Doubling& at) { return at.kept(round).of(count); },
          [](int64_t& mine, int64_t theirs) { mine += theirs; });
    }
    for (int round = order.rounds() - 1; round >= 0; --round) {
      exchange(
          ranks, round, [&](const Doubling& at) { return at.given(round).of(count); },
          [](int64_t& mine, int64_t theirs) { mine = theirs; });
    }
    with_partners(ranks, [](Vector& beyond, const Vector& partner) { beyond = partner; });
    for (const auto& rank : ranks) RC_ASSERT(rank == total);
  }));
}

TEST_CASE("two ranks of a round divide their block, and the blocks of all ranks divide the vector") {
  CHECK(holds("halves", [] {
    const int size = *rc::gen::inRange(2, 600);
    const uint64_t count = *rc::gen::inRange<uint64_t>(0, 1'000'000'000'000);
    const int core = Doubling{0, size}.core(), rank = *rc::gen::inRange(0, core);
    const Doubling order{rank, size};
    Block before = Share{rank, 0}.of(count);
    RC_ASSERT(before == (Block{0, count}));
    for (int round = 0; round < order.rounds(); ++round) {
      const Block kept = order.kept(round).of(count), given = order.given(round).of(count);
      RC_ASSERT(given == (Doubling{order.peer(round), size}.kept(round).of(count)));
      const Block& low = kept.offset < given.offset || given.length == 0 ? kept : given;
      const Block& high = &low == &kept ? given : kept;
      RC_ASSERT(low.offset == before.offset || low.length == 0);
      RC_ASSERT(low.length + high.length == before.length);
      RC_ASSERT(high.length == 0 || high.offset == before.offset + low.length);
      before = kept;
    }
    RC_ASSERT(before.length - count / static_cast<uint64_t>(core) <= 1);
  }));
}

TEST_CASE("a world of one has no neighbours and nothing to do") {
  static_assert(Ring{0, 1}.steps() == 0);
  static_assert(Doubling{0, 1}.rounds() == 0);
  static_assert(Doubling{0, 1}.partner() == -1);
  static_assert(Tree{0, 1, 0}.rounds() == 0);
  static_assert(Tree{0, 1, 0}.children().count == 0);
  static_assert(Tree{0, 1, 0}.parent() == -1);
}

}  // namespace
