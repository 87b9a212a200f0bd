// Work that a rank does by itself while the others wait for it, and that may take longer than a collective.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "ddprun/comm_backend.hpp"

namespace ddprun::train {

// Calls `work`, and returns when all ranks have ended theirs: a slow disk is no fault, but one that takes more than ten
// timeouts longer than the others'. Collective; a rank without work gives an empty function. Meanwhile the ranks meet
// several times within `timeout`, for which a thread of this function's uses the backend: `work` must not. Throws what
// `work` throws; Error(peer) where a rank has ended, hangs outside of its work or is waited for too long, and then only
// when `work` has returned. A rank whose work takes longer than `timeout` says so once: "rank 0 has been saving a
// checkpoint for longer ...".
void run_with_heartbeat(CommBackend& backend, std::chrono::milliseconds timeout, const std::string& doing,
              const std::function<void()>& work);

}  // namespace ddprun::train
