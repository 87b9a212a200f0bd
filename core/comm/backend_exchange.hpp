// The fingerprint exchange of ranks that share no folder, such as those of torchrun.
#pragma once

#include <memory>

#include "comm/fingerprint.hpp"

namespace ddprun::comm {

// Over the backend itself: an allgather of one fixed size, which therefore always matches, before each collective.
// `backend` must outlive the exchange.
std::unique_ptr<FingerprintExchange> exchange_over(CommBackend& backend);

}  // namespace ddprun::comm
