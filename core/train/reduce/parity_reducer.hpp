// A reducer that measures another: how far its averages lie from those of exact sums.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "ddprun/comm_backend.hpp"
#include "train/loop/parity_log.hpp"
#include "train/reduce/reducer.hpp"

namespace ddprun::train {

// While the log wants it, keeps a copy of every local gradient that is added, sums those of all ranks in float64 after
// each finalize, and tells the log the distances. Gradients of another type than float32 have none. The local gradients
// come over the backend in pieces, so that it takes one copy of the gradients and a few MiB. Reduces through `inner`.
// All must outlive it. Collective, as `inner` is.
std::unique_ptr<Reducer> parity_reducer(std::unique_ptr<Reducer> inner, CommBackend& backend,
                                        std::vector<NamedTensor> parameters, ParityLog& log,
                                        std::chrono::milliseconds timeout);

}  // namespace ddprun::train
