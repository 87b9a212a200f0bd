// The tensors that all ranks have: made equal, and compared.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/group.hpp"
#include "train/tensor/parameters.hpp"

namespace ddprun::train {

// Overwrites the tensors, of any dtype, with those of rank `root`, with one collective per dtype. The group has a
// backend. Collective; throws as CommBackend does.
void broadcast_tensors(const comm::Group& ranks, const std::vector<NamedTensor>& tensors, int root = 0);

// Compares every tensor over the ranks by a 64-bit hash of its bytes. Collective. If they differ, throws Error(peer) on
// every rank that names the first such tensor and the ranks.
void compare_tensors(const comm::Group& ranks, const std::vector<NamedTensor>& tensors, int64_t step);

}  // namespace ddprun::train
