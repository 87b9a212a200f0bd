// A barrier for work that may take longer than the timeout of a collective.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "ddprun/comm_backend.hpp"

namespace ddprun::train {

// Calls `work` and returns when all ranks have finished theirs. Collective; a rank without work passes an empty
// function. The ranks exchange a heartbeat several times within `timeout`, so a slow disk is not an error. It becomes
// an error if a rank takes ten timeouts longer than the others. A separate thread sends the heartbeats through the
// backend, so `work` must not use the backend. A rank whose work takes longer than `timeout` reports this once: "rank 0
// has been saving a checkpoint for longer ...". Throws what `work` throws. Throws Error(peer), after `work` has
// returned, if a rank has ended, hangs outside its work, or takes too long.
void run_with_heartbeat(CommBackend& backend, std::chrono::milliseconds timeout, const std::string& doing,
                        const std::function<void()>& work);

}  // namespace ddprun::train
