// The collectives on a mesh. ddprun has checked the sizes (contract: comm_backend.hpp). All functions throw
// ConnectionLost, or what Gloo throws; after that the mesh can only be closed. All ranks of a mesh call the same
// functions in the same order.
#pragma once

#include <gloo/context.h>

#include <cstdint>
#include <memory>
#include <string_view>

#include "ddprun/plugin/comm_plugin.hpp"
#include "scratch.hpp"

namespace ddprun::gloo_backend {

// The context of one collective. `tag` differs for each collective, so that no two share a slot.
struct Run {
  const std::shared_ptr<gloo::Context>& context;
  Scratch& scratch;
  uint32_t tag;
};

// Gloo's ring (reduce-scatter, then allgather, in segments), with the reductions of plugins/lib/reduction.
void ring_allreduce(const Run& run, const Collective& call);
// Up and down the binomial tree of topology.hpp, root 0. Fewer messages than the ring, more bytes: for small vectors.
void tree_allreduce(const Run& run, const Collective& call);
// Recursive halving, then doubling (topology.hpp). If the world size is a power of two, it sends as few bytes as the
// ring, in about as few messages as the tree. Otherwise some ranks also send and receive whole vectors.
void halving_doubling_allreduce(const Run& run, const Collective& call);

// Down the same tree from call.root.
void tree_broadcast(const Run& run, const Collective& call);
// Gloo's ring.
void ring_allgather(const Run& run, const Collective& call);
// The reduce-scatter phase of the ring of topology.hpp, in segments. Gloo has no reduce-scatter with options.
void ring_reduce_scatter(const Run& run, const Collective& call);
// Gloo's dissemination barrier.
void dissemination_barrier(const Run& run);

}  // namespace ddprun::gloo_backend
