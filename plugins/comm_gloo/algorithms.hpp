// The collectives on a mesh. Sizes are those of the contract (comm_backend.hpp): ddprun has checked them. All throw
// ConnectionLost, or what Gloo throws; then the mesh can only be closed. Ranks of one mesh call the same ones in the
// same order.
#pragma once

#include <gloo/context.h>

#include <cstdint>
#include <memory>
#include <string_view>

#include "ddprun/plugin/comm_plugin.hpp"
#include "scratch.hpp"

namespace ddprun::gloo_backend {

// What a collective works with. `tag` is new for each collective, so that no two of them ever share a slot.
struct Run {
  const std::shared_ptr<gloo::Context>& context;
  Scratch& scratch;
  uint32_t tag;
};

// Gloo's ring (reduce-scatter, then allgather, in segments), with the reductions of plugins/lib/reduction.
void ring_allreduce(const Run& run, const Collective& call);
// Up and down the binomial tree of topology.hpp, root 0. Fewer messages than the ring, more bytes: for small vectors.
void tree_allreduce(const Run& run, const Collective& call);
// Recursive halving, then doubling, of topology.hpp. As few bytes as the ring and about as few messages as the tree,
// where the world is a power of two; in other worlds, some ranks send and receive whole vectors besides.
void halving_doubling_allreduce(const Run& run, const Collective& call);

// Down the same tree from call.root.
void tree_broadcast(const Run& run, const Collective& call);
// Gloo's ring.
void ring_allgather(const Run& run, const Collective& call);
// The reduce-scatter phase of the ring of topology.hpp, in segments. Gloo has none that takes options.
void ring_reduce_scatter(const Run& run, const Collective& call);
// Gloo's dissemination barrier.
void dissemination_barrier(const Run& run);

}  // namespace ddprun::gloo_backend
