// The backend of a world of one, where every collective is the identity: the same program trains on one rank.
#pragma once

#include <memory>

#include "ddprun/comm_backend.hpp"

namespace ddprun::comm {

// Copies send to recv where they differ (host memory only; CUDA memory must be in place). It refuses
// what every backend refuses, so that a program that works on one rank makes only calls that are right on several.
std::unique_ptr<CommBackend> single_process_backend();

}  // namespace ddprun::comm
