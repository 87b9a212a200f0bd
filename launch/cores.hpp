// The cores of a rank: srun and mpirun may bind each rank to some cores, or let all ranks of a host use all cores.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/store.hpp"
#include "launch/world.hpp"

namespace ddprun::launch {

// The cores that this process may use (its affinity mask), one character per core: "1101" is cores 0, 1 and 3. Empty if
// the kernel does not report it.
std::string core_mask();

// How many cores a rank gets: the number in its mask, divided by the number of ranks whose masks overlap it; at
// least 1, or 0 if its own mask is not known. `masks`: of all ranks of the host. `mine`: the index of this rank's mask.
// Pure.
int cores_of_rank(const std::vector<std::string>& masks, std::size_t mine);

// The compute threads for this rank: world.cores, or else its share of the cores that it may use; at least 1.
int threads_of_rank(const World& world);

// Whether the compute threads of `ranks` ranks leave none of `cores` cores free. `threads`: of each rank; 0: each rank
// has its share of the cores, so all are in use. False for ranks with one thread, which never waits for another. Pure.
bool fill_cores(int64_t ranks, int64_t threads, int64_t cores);

// Sets world.cores, after locate(). Collective. Throws as Store::get.
void share_cores(World& world, Store& store, std::chrono::milliseconds timeout);

}  // namespace ddprun::launch
