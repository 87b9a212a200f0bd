#include <cstring>

#include "algorithms.hpp"
#include "exchange.hpp"
#include "reduction/topology.hpp"

namespace ddprun::gloo_backend {
namespace {

// Passes one chunk from the parent to the children. The root has it already. The largest subtree comes first.
void pass_down(const Run& run, const topology::Tree& tree, std::byte* chunk, uint64_t bytes) {
  if (tree.parent() >= 0) run.receive(tree.parent(), chunk, bytes);
  const auto children = tree.children();
  for (auto i = static_cast<std::size_t>(children.count); i-- > 0;) run.send(children.at[i], chunk, bytes);
}

}  // namespace

// A rank sends a chunk up, and then passes the previous one down. If it sent all chunks up first, its parent could wait
// for it to read a result.
void tree_allreduce(const Run& run, const Collective& call) {
  const topology::Tree tree{run.rank, run.size, 0};
  const Reduction reduction(run, call);
  const uint64_t bytes = call.count * size_of(call.dtype);
  auto* const data = static_cast<std::byte*>(call.recv);
  if (call.send != call.recv) std::memcpy(data, call.send, bytes);

  const bool is_root = tree.parent() < 0;
  uint64_t passed = 0;
  const auto pass_next = [&] {
    const uint64_t length = std::min(run.mesh.chunk(), bytes - passed);
    pass_down(run, tree, data + passed, length);
    passed += length;
  };
  for_chunks(run, bytes, [&](uint64_t at, uint64_t length) {
    for (const int child : tree.children()) reduction.receive(child, data + at, data + at, length);
    if (!is_root) {
      run.send(tree.parent(), data + at, length);
      if (at > 0) pass_next();
    } else {
      if (call.op == Op::avg) reduction::divide(data + at, call.dtype, length / size_of(call.dtype), run.divisor);
      pass_next();
    }
  });
  if (!is_root) pass_next();
}

void tree_broadcast(const Run& run, const Collective& call) {
  const topology::Tree tree{run.rank, run.size, call.root};
  for_chunks(run, call.count * size_of(call.dtype), [&](uint64_t at, uint64_t length) {
    pass_down(run, tree, static_cast<std::byte*>(call.recv) + at, length);
  });
}

}  // namespace ddprun::gloo_backend
