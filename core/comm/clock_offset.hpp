// The difference between the clocks of two hosts.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

#include "ddprun/comm_backend.hpp"

namespace ddprun::comm {

int64_t steady_now();  // std::chrono::steady_clock, in nanoseconds

// How far this rank's std::chrono::steady_clock is ahead of that of rank 0; 0 if both may be the same clock. The error
// is at most half the time of the fastest of a few allgathers. `clock` reads this rank's clock, in nanoseconds; a test
// may replace it. Collective. Throws as CommBackend does.
//
// No rank can finish an allgather before all have begun it. So each round bounds the difference from both sides, as a
// round trip does in NTP (RFC 5905).
std::chrono::nanoseconds clock_offset(CommBackend& backend, std::chrono::milliseconds timeout,
                                      const std::function<int64_t()>& clock = steady_now);

}  // namespace ddprun::comm
