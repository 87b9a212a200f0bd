// Keeping replicas equal: rank 0's tensors to all, and the proof that nobody has drifted.
#pragma once

#include <chrono>
#include <vector>

#include "ddprun/comm_backend.hpp"
#include "train/loop/parameters.hpp"

namespace ddprun::train {

// Overwrites the tensors with rank 0's, one collective for each dtype among them. Collective; throws as CommBackend
// does.
void broadcast_tensors(CommBackend& backend, const std::vector<NamedTensor>& tensors,
                       std::chrono::milliseconds timeout);

// Compares the bytes of every tensor over the ranks, by a 64-bit hash each. Collective. Throws Error(peer) on every
// rank when they differ, naming the first tensor and the ranks.
void compare_tensors(CommBackend& backend, const std::vector<NamedTensor>& tensors, int64_t step,
                     std::chrono::milliseconds timeout);

}  // namespace ddprun::train
