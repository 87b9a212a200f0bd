// A reducer that measures the rounding error of another reducer.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "ddprun/comm_backend.hpp"
#include "ddprun/reducer.hpp"
#include "train/loop/parity_log.hpp"

namespace ddprun::train {

// Reduces through `inner`. While the log is active, it keeps a copy of every local gradient. After each finalize it
// sums the copies of all ranks in float64 and passes the distances between the reduced gradients and these sums to the
// log. Only for float32 gradients. It gathers the local gradients in pieces, so that it needs memory for one copy of
// the gradients and a few MiB. All arguments must outlive the result. Collective, as `inner` is.
std::unique_ptr<Reducer> parity_reducer(Reducer& inner, CommBackend& backend, std::vector<NamedTensor> parameters,
                                        ParityLog& log, std::chrono::milliseconds timeout);

}  // namespace ddprun::train
