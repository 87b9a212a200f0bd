// comm.check = "fingerprint": ranks that disagree about a collective are stopped before its data moves.
#pragma once

#include <chrono>
#include <memory>

#include "comm/fingerprint.hpp"

namespace ddprun::comm {

// Before each collective, exchanges its fingerprint (kind, number, dtype, count, op, root, memory). Where they differ,
// every rank throws Error(peer) with all of them, and the communicator serves no more: each later call throws
// Error(peer). `deadline` is the longest wait for the peers' fingerprints.
std::unique_ptr<CommBackend> checked(std::unique_ptr<CommBackend> inner, std::unique_ptr<FingerprintExchange> exchange,
                                     std::chrono::milliseconds deadline);

// An exchange over the backend itself: an allgather of one fixed size, which therefore always matches, ahead of each
// collective. For ranks that share no folder, such as those of torchrun. `backend` is the one that checked() wraps and
// must outlive the exchange, as it does there.
std::unique_ptr<FingerprintExchange> exchange_over(CommBackend& backend);

}  // namespace ddprun::comm
