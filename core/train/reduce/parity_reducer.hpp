// A reducer that measures another: how far its averages lie from those of exact sums.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "ddprun/comm_backend.hpp"
#include "ddprun/reducer.hpp"
#include "train/loop/parity_log.hpp"

namespace ddprun::train {

// Reduces through `inner`. While the log is active, it keeps a copy of every local gradient that is added, sums those
// of all ranks in float64 after each finalize, and gives the log the distances of the reduced gradients from these
// sums; float32 gradients only. The local gradients are gathered in pieces, so that this needs one copy of the
// gradients and a few MiB. All arguments must outlive the result. Collective, as `inner` is.
std::unique_ptr<Reducer> parity_reducer(Reducer& inner, CommBackend& backend, std::vector<NamedTensor> parameters,
                                        ParityLog& log, std::chrono::milliseconds timeout);

}  // namespace ddprun::train
