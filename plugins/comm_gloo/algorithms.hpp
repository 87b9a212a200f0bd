// The collectives on a mesh. ddprun has checked the sizes (contract: comm_backend.hpp). All functions throw what Mesh
// throws; after that the mesh can only be closed. All ranks of a mesh call the same functions in the same order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "ddprun/plugin/comm_plugin.hpp"
#include "mesh.hpp"

namespace ddprun::gloo_backend {

// Memory for messages in transit. Kept between collectives: page faults in new memory cost more than the reduction.
class Scratch {
 public:
  // At least `bytes` bytes, uninitialised, aligned for any dtype; valid until the next call. Throws std::bad_alloc.
  std::byte* of_size(std::size_t bytes) {
    if (bytes > size_) {
      memory_.reset();
      size_ = 0;
      memory_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
      size_ = bytes;
    }
    return memory_.get();
  }

 private:
  std::unique_ptr<std::byte[]> memory_;
  std::size_t size_ = 0;
};

// What one collective works with: some ranks of a mesh, numbered from 0.
struct Run {
  Mesh& mesh;
  Scratch& arrived;  // a chunk from a peer
  Scratch& sums;
  int rank, size;
  int divisor;                   // of Op::avg
  std::span<const int> members;  // their numbers in the mesh, ascending; empty: all ranks of the mesh

  void send(int to, const void* data, uint64_t bytes) const { mesh.send(in_mesh(to), data, bytes); }
  void receive(int from, void* data, uint64_t bytes) const { mesh.receive(in_mesh(from), data, bytes); }
  int in_mesh(int peer) const { return members.empty() ? peer : members[static_cast<std::size_t>(peer)]; }
};

// A reduce-scatter and an allgather in Gloo's own ring, so the sums have the bits of PyTorch's Gloo backend.
void ring_allreduce(const Run& run, const Collective& call);
// Up and down the binomial tree of topology.hpp, root 0. Fewer messages than the ring, more bytes.
void tree_allreduce(const Run& run, const Collective& call);
// Recursive halving, then doubling (topology.hpp). If the world size is a power of two, it sends as few bytes as the
// ring, in about as few messages as the tree. Otherwise some ranks also send and receive whole vectors.
void halving_doubling_allreduce(const Run& run, const Collective& call);
// Recursive doubling (topology.hpp): in each round, two ranks exchange their whole vectors. The fewest messages, for
// small vectors.
void doubling_allreduce(const Run& run, const Collective& call);

// Down the same tree from call.root.
void tree_broadcast(const Run& run, const Collective& call);
// The second phase of the ring of topology.hpp.
void ring_allgather(const Run& run, const Collective& call);
// Its first phase.
void ring_reduce_scatter(const Run& run, const Collective& call);
// Pair by pair (reduction/pairwise.hpp).
void pairwise_exchange(const Run& run, const Exchange& call);
// The barrier of Hensgen, Finkel and Manber, "Two algorithms for barrier synchronization", IJPP 17 (1988): in round k,
// each rank sends to the rank 2^k above it, and waits for the rank 2^k below it.
void dissemination_barrier(const Run& run);

}  // namespace ddprun::gloo_backend
