// A checkpoint for hosts that do not share rank 0's disk.
#pragma once

#include <chrono>
#include <string>

#include "base/store.hpp"
#include "launch/world.hpp"

namespace ddprun::run {

// Copies rank 0's commit (the model file and the states of all ranks) through the store to each host that does not have
// it. `path`: of the model file, on this host. Collective. Throws Error(failure) for a file that cannot be read or
// written, and as Store.
void copy_commit(const std::string& path, const launch::World& world, Store& store,
                 std::chrono::milliseconds timeout);

}  // namespace ddprun::run
