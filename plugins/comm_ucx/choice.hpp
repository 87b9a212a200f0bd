// Which algorithm "auto" takes.
#pragma once

#include <cstdint>

namespace ddprun::ucx_backend {

// Whether an allreduce of so many bytes goes by the tree: a function of the size and the world only, so that all ranks
// agree and runs repeat.
bool tree_is_faster(uint64_t bytes, int world);

}  // namespace ddprun::ucx_backend
