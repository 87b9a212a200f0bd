// Who sends what to whom in an exchange: the same for every transport.
#pragma once

#include "ddprun/collective.hpp"

namespace ddprun::reduction {

// The pairwise exchange of Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in
// MPICH", IJHPCA 19 (2005): in each step, a rank sends to the rank so far above it, and receives from the rank so far
// below it. Calls copy(to, from, bytes) for the rank's own block, unless it is empty, and for each step
// move(to, out, from, in), where both blocks may be empty. move returns when `out` has been sent and `in` has arrived.
// It must receive while it sends: then no rank of the earliest step waits for one of a later step.
template <class Copy, class Move>
void exchange_pairwise(int rank, int size, const Exchange& call, Copy&& copy, Move&& move) {
  const auto mine = static_cast<std::size_t>(rank);
  if (call.recv[mine].bytes > 0) copy(call.recv[mine].data, call.send[mine].data, call.recv[mine].bytes);
  for (int step = 1; step < size; ++step) {
    const int to = (rank + step) % size, from = (rank - step + size) % size;
    move(to, call.send[static_cast<std::size_t>(to)], from, call.recv[static_cast<std::size_t>(from)]);
  }
}

}  // namespace ddprun::reduction
