// The collectives over messages, each as the steps of one rank (pipeline.hpp). The adapter has checked the sizes
// (contract: comm_plugin.h). Pure functions: they do not access the buffers.
#pragma once

#include <vector>

#include "ddprun/plugin/comm_plugin.hpp"
#include "pipeline.hpp"

namespace ddprun::ucx_backend {

struct Group {
  int rank;
  int size;
};

// The steps, and the most elements in any step of any rank, of which a step with a share sends only this share.
struct Schedule {
  std::vector<Step> steps;
  uint64_t longest = 0;
};

// The ring of topology.hpp: reduce-scatter, then allgather. The fewest bytes: for large vectors.
void ring_allreduce(const Group& group, const Collective& call, Schedule& schedule);
// Recursive doubling (topology.hpp): whole vectors in the fewest successive messages. For small vectors.
void tree_allreduce(const Group& group, const Collective& call, Schedule& schedule);
// Halving and doubling (topology.hpp): as few bytes as the ring if the number of ranks is a power of two. Each segment
// is halved by itself, so that it can be sent on before the next one has arrived.
void halving_doubling_allreduce(const Group& group, const Collective& call, Schedule& schedule);
// Down the binomial tree of topology.hpp, from call.root.
void tree_broadcast(const Group& group, const Collective& call, Schedule& schedule);
// The allgather phase of the ring. recv already has the rank's own block.
void ring_allgather(const Group& group, const Collective& call, Schedule& schedule);
// Pairwise exchange, as in Thakur, Rabenseifner and Gropp (2005): in step k each rank sends to rank + k the block of
// that rank, and adds what rank - k sends. As many bytes as the ring, and no partial sums to keep.
void pairwise_reduce_scatter(const Group& group, const Collective& call, Schedule& schedule);
// The dissemination barrier of Hensgen, Finkel and Manber, "Two algorithms for barrier synchronization", IJPP 17
// (1988).
void dissemination_barrier(const Group& group, Schedule& schedule);

}  // namespace ddprun::ucx_backend
