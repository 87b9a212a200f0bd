// TreeReduction: adds the gradients of all virtual ranks in the order of the tree (tree.hpp), on any number of ranks.
#pragma once

#include <torch/torch.h>

#include <cstddef>
#include <optional>
#include <vector>

#include "comm/group.hpp"
#include "elastic/tree.hpp"
#include "train/reduce/gradient_sync.hpp"

namespace ddprun::elastic {

// The virtual ranks of one rank are computed one after the other; each is a part of the step. Within a rank, the
// gradients of the parts are added pairwise, as soon as two neighbours are complete. Over the ranks, each rank adds one
// segment of every bucket, and sends the result to all: a reduce-scatter and an allgather, both by
// CommBackend::exchange. If the number of ranks is a power of two, a rank sends as many bytes as in a ring. Otherwise
// its share has several nodes, and it sends each of them in the reduce-scatter. Two ranks call allreduce, because a sum
// of two has one order. So do 4, 8, ... ranks whose backend can add in this order (Collective::canonical_order).
//
// Replaces the allreduce of `sync` from the next step on. The gradients become sums over the virtual ranks, not
// averages: the caller divides each loss by their number. The training thread calls all functions.
class TreeReduction {
 public:
  // All ranks pass the same `virtual_ranks`. wire: the dtype in which gradients of more than two bytes per element are
  // sent and added; none: their own. Throws Error(plugin) if the backend has no exchange and would add in another
  // order. It must outlive the steps of `sync`.
  TreeReduction(train::GradientSync& sync, comm::Group ranks, int virtual_ranks,
                std::optional<torch::ScalarType> wire = std::nullopt);

  const Range& share() const { return share_; }
  // Ends a part: call it after the part's last backward, whose gradients were held back (GradientHooks::hold), but not
  // for the last part of the share. part: its index in the share, from 0. Moves the gradients out of the parameters.
  // may_lack: a missing one counts as zero; otherwise it is an Error(failure).
  void end_part(int part, bool may_lack);
  // After GradientSync::finalize.
  void end_step() { sums_.clear(); }

 private:
  using Tensors = std::vector<torch::Tensor>;

  void prepare(const train::Bucket& bucket, std::size_t index);
  Tensors payload_of(const train::Bucket& bucket, std::size_t index) const;  // what is sent
  train::Reduced reduce(const train::Bucket& bucket, std::size_t index);
  torch::ScalarType wire_type(const torch::Tensor& tensor) const;  // in which it is sent
  bool is_added_by_backend(const torch::Tensor& flat) const;
  void sum_piece(const Tensors& nodes, int piece, int pieces);

  train::GradientSync& sync_;
  const comm::Group ranks_;
  const Range share_;
  const std::optional<torch::ScalarType> wire_;
  std::vector<std::vector<Range>> nodes_;  // of each rank's share
  std::size_t rounds_ = 0;                 // the most nodes of a rank
  std::vector<std::size_t> first_{0};      // how many nodes the ranks before each rank have; last: all
  TreeSum<Tensors> sums_;                  // of the parts so far, by parameter
  std::vector<Tensors> payloads_;          // by bucket: of what is sent, all but the bucket itself
  torch::Tensor room_;                     // bytes, for what sum_piece() receives
};

}  // namespace ddprun::elastic
