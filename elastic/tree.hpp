// Which virtual ranks a rank computes, and in which order values of virtual ranks are added.
//
// Virtual ranks are 0 .. V - 1, V a power of two. They are the leaves of one binary tree: 0 and 1 are added, 2 and 3
// are added, then these two sums, and so on. The tree depends on V alone. So a sum of floating-point numbers has the
// same bits, on whichever ranks its parts are computed.
#pragma once

#include <utility>
#include <vector>

namespace ddprun::elastic {

// The virtual ranks first .. first + count - 1.
struct Range {
  int first = 0;
  int count = 1;
  bool operator==(const Range&) const = default;
};

// The virtual ranks of rank `rank` of `size`, which is at most `virtual_ranks`. All shares together are all virtual
// ranks, in order. Their lengths differ by at most one, longer ones first.
constexpr Range share_of(int rank, int size, int virtual_ranks) {
  const int length = virtual_ranks / size, longer = virtual_ranks % size;
  return {rank * length + (rank < longer ? rank : longer), length + (rank < longer ? 1 : 0)};
}

// Whether the tree adds the sums over these ranges. `left` and `right` are nodes of the tree.
constexpr bool are_siblings(const Range& left, const Range& right) {
  return left.count == right.count && left.first + left.count == right.first && left.first % (2 * left.count) == 0;
}

// Adds values in the order of the tree. Nodes of the tree are pushed from left to right, without gaps. What can be
// added is added immediately, so that few values are kept: those of the fewest nodes that cover what was pushed.
// Single-threaded.
template <class Value>
class TreeSum {
 public:
  struct Node {
    Range at;
    Value value;
  };

  // add(left, right) adds `right` to `left`. What it throws passes through; then the object must not be used again.
  template <class Add>
  void push(Range at, Value value, Add&& add) {
    for (; !nodes_.empty() && are_siblings(nodes_.back().at, at); nodes_.pop_back()) {
      add(nodes_.back().value, value);
      at = {nodes_.back().at.first, 2 * at.count};
      value = std::move(nodes_.back().value);
    }
    nodes_.push_back({at, std::move(value)});
  }
  void clear() { nodes_.clear(); }
  const std::vector<Node>& nodes() const { return nodes_; }

 private:
  std::vector<Node> nodes_;
};

// The fewest nodes of the tree that cover a share, from left to right.
inline std::vector<Range> nodes_of(const Range& share) {
  std::vector<Range> nodes;
  for (int first = share.first, end = share.first + share.count; first < end; first += nodes.back().count) {
    int count = 1;
    while (first % (2 * count) == 0 && first + 2 * count <= end) count *= 2;
    nodes.push_back({first, count});
  }
  return nodes;
}

}  // namespace ddprun::elastic
