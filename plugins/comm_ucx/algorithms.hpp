// The collectives over messages, each written down as the steps of one rank (pipeline.hpp). Sizes are those of the
// contract (comm_plugin.h): the adapter has checked them. Pure functions of their arguments; buffers are only pointed
// at.
#pragma once

#include <vector>

#include "ddprun/plugin/comm_plugin.hpp"
#include "pipeline.hpp"

namespace ddprun::ucx_backend {

struct Group {
  int rank;
  int size;
};

// The steps, and the largest number of elements in any step of any rank.
struct Schedule {
  std::vector<Step> steps;
  uint64_t longest = 0;
};

// The ring of topology.hpp: reduce-scatter, then allgather. For large vectors: the fewest bytes.
void ring_allreduce(const Group& group, const Collective& call, Schedule& schedule);
// Recursive doubling, as in topology.hpp: whole vectors up as many binomial trees as there are ranks. For small ones:
// the fewest messages one after the other.
void tree_allreduce(const Group& group, const Collective& call, Schedule& schedule);
// Down the binomial tree of topology.hpp from call.root.
void tree_broadcast(const Group& group, const Collective& call, Schedule& schedule);
// The allgather phase of the ring. The rank's own block is in recv already.
void ring_allgather(const Group& group, const Collective& call, Schedule& schedule);
// Pairwise exchange, as in Thakur, Rabenseifner and Gropp (2005): in step k each rank sends to the k-th behind it that
// rank's block, and adds what the k-th before it sends. As many bytes as the ring, and no partial sums to keep.
void pairwise_reduce_scatter(const Group& group, const Collective& call, Schedule& schedule);
// The dissemination barrier of Hensgen, Finkel and Manber, "Two algorithms for barrier synchronization", IJPP 17
// (1988).
void dissemination_barrier(const Group& group, Schedule& schedule);

}  // namespace ddprun::ucx_backend
