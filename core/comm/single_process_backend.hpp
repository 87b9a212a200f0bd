// The backend of a world of one, where every collective is the identity: the same program trains on one rank.
#pragma once

#include <memory>

#include "comm/comm_backend.hpp"

namespace ddprun::comm {

// Copies send to recv where they differ (host memory only; CUDA memory must be in place). Refuses what any backend
// refuses, so that a program that runs alone is also right in company.
std::unique_ptr<CommBackend> single_process_backend();

}  // namespace ddprun::comm
