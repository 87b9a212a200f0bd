// The tree of virtual ranks: shares, nodes and sums.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <bit>
#include <cmath>
#include <cstdint>

#include "elastic/tree.hpp"

using namespace ddprun::elastic;

namespace {

// The sum of all leaves as the definition says: neighbours first.
float sum_by_definition(std::vector<float> leaves) {
  for (; leaves.size() > 1; leaves.resize(leaves.size() / 2)) {
    for (std::size_t i = 0; i < leaves.size() / 2; ++i) leaves[i] = leaves[2 * i] + leaves[2 * i + 1];
  }
  return leaves.front();
}

void add(float& left, float right) {
  left += right;
}

// The sum as `size` ranks compute it: each adds its share, then the nodes of all are added.
float sum_on(int size, const std::vector<float>& leaves) {
  TreeSum<float> all;
  for (int rank = 0; rank < size; ++rank) {
    const Range share = share_of(rank, size, static_cast<int>(leaves.size()));
    TreeSum<float> mine;
    for (int leaf = share.first; leaf < share.first + share.count; ++leaf) {
      mine.push({leaf, 1}, leaves[static_cast<std::size_t>(leaf)], add);
    }
    for (const auto& node : mine.nodes()) all.push(node.at, node.value, add);
  }
  CHECK(all.nodes().size() == 1);
  return all.nodes().front().value;
}

}  // namespace

TEST_CASE("shares are all virtual ranks in order, of nearly equal length") {
  for (const int virtual_ranks : {1, 2, 4, 8, 16, 64}) {
    for (int size = 1; size <= virtual_ranks; ++size) {
      int next = 0;
      for (int rank = 0; rank < size; ++rank) {
        const Range share = share_of(rank, size, virtual_ranks);
        CHECK(share.first == next);
        CHECK(share.count >= virtual_ranks / size);
        CHECK(share.count <= virtual_ranks / size + 1);
        next += share.count;
      }
      CHECK(next == virtual_ranks);
    }
  }
  CHECK(share_of(0, 3, 8) == Range{0, 3});
  CHECK(share_of(2, 3, 8) == Range{6, 2});
}

TEST_CASE("a share is covered by few nodes, each a power of two at a multiple of itself") {
  for (int virtual_ranks = 1; virtual_ranks <= 64; virtual_ranks *= 2) {
    for (int size = 1; size <= virtual_ranks; ++size) {
      for (int rank = 0; rank < size; ++rank) {
        const Range share = share_of(rank, size, virtual_ranks);
        const std::vector<Range> nodes = nodes_of(share);
        int next = share.first;
        for (const Range& node : nodes) {
          CHECK(node.first == next);
          CHECK(std::has_single_bit(static_cast<unsigned>(node.count)));
          CHECK(node.first % node.count == 0);
          next += node.count;
        }
        CHECK(next == share.first + share.count);
        CHECK(nodes.size() <= 2 * std::bit_width(static_cast<unsigned>(share.count)));
      }
    }
  }
  CHECK(nodes_of({0, 8}) == std::vector<Range>{{0, 8}});
  CHECK(nodes_of({3, 3}) == std::vector<Range>{{3, 1}, {4, 2}});
}

TEST_CASE("a sum has the same bits on any number of ranks") {
  rc::check([] {
    const auto leaves = *rc::gen::container<std::vector<float>>(
        std::size_t{1} << *rc::gen::inRange(0, 7),
        rc::gen::map(rc::gen::arbitrary<float>(), [](float value) { return std::isfinite(value) ? value : 1.0F; }));
    const float expected = sum_by_definition(leaves);
    for (int size = 1; size <= static_cast<int>(leaves.size()); ++size) {
      RC_ASSERT(std::bit_cast<uint32_t>(sum_on(size, leaves)) == std::bit_cast<uint32_t>(expected));
    }
  });
}
