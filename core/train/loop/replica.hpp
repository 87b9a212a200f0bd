// Keeps replicas equal: broadcasts rank 0's tensors, and checks that all ranks hold the same values.
#pragma once

#include <chrono>
#include <vector>

#include "ddprun/comm_backend.hpp"
#include "train/loop/parameters.hpp"

namespace ddprun::train {

// Overwrites the tensors with those of rank 0, with one collective per dtype. Collective; throws as CommBackend does.
void broadcast_tensors(CommBackend& backend, const std::vector<NamedTensor>& tensors,
                       std::chrono::milliseconds timeout);

// Compares every tensor over the ranks by a 64-bit hash of its bytes. Collective. If they differ, throws Error(peer) on
// every rank that names the first such tensor and the ranks.
void compare_tensors(CommBackend& backend, const std::vector<NamedTensor>& tensors, int64_t step,
                     std::chrono::milliseconds timeout);

}  // namespace ddprun::train
