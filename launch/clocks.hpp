// The clocks of a job's hosts. Run folders, logs and records contain their times.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "base/store.hpp"
#include "launch/world.hpp"

namespace ddprun::launch {

// On rank 0: the line to print if the clocks of two hosts differ by more than five seconds. Otherwise empty.
// Collective; call it right after another collective call, so that all ranks read their clocks at nearly the same time.
// `clock` returns the time since the epoch; a test may replace it. Throws as Store::allgather.
std::string compare_clocks(const World& world, Store& store, std::chrono::milliseconds timeout,
                           const std::function<std::chrono::milliseconds()>& clock);

// As above, with the system's clock.
std::string compare_clocks(const World& world, Store& store, std::chrono::milliseconds timeout);

}  // namespace ddprun::launch
