// The cores of a rank: srun and mpirun may bind each rank to its own, or let all ranks of a host share all.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "launch/store.hpp"
#include "launch/world.hpp"

namespace ddprun::launch {

// The cores that this process may use (its affinity mask), one character per core: "1101" is cores 0, 1 and 3. Empty if
// the kernel does not report it.
std::string core_mask();

// A rank's part of the cores: those of its mask, divided by the ranks whose masks overlap with it. `masks` are those of
// all ranks of its host, `mine` the index of its own. At least 1; 0 if its own mask is not known. Pure.
int cores_of_rank(const std::vector<std::string>& masks, std::size_t mine);

// Sets world.cores, after locate(). Collective. Throws as Store::get.
void share_cores(World& world, Store& store, std::chrono::milliseconds timeout);

}  // namespace ddprun::launch
