// What ranks do together across hosts that share no disk and no clock.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "comm/group.hpp"

namespace ddprun::run {

// Gives all ranks the text of one of them, which passes it; the others pass "". Throws as what it communicates with.
using Pass = std::function<std::string(const std::string& text)>;

// A Pass from rank `root` through the backend of the group.
Pass pass_from(const comm::Group& ranks, int root);

// Copies a file to the ranks that receive it while `rank` sends it; a target of "" takes nothing. A reader of the
// target sees the whole file or none. Throws Error(failure): on all ranks if the file cannot be read, and on a rank
// that cannot write it. Otherwise throws as `pass` does.
void send_file(int rank, const std::string& path, const Pass& pass);
void receive_file(const std::string& target, const Pass& pass);

int64_t steady_now();  // std::chrono::steady_clock, in nanoseconds

// How far this rank's std::chrono::steady_clock is ahead of that of rank 0, by the time at which each leaves a barrier;
// 0 if both are less than 0.1 s apart: then they are one clock. `clock` reads this rank's clock, in nanoseconds; a test
// may replace it. Collective. Throws as CommBackend does.
std::chrono::nanoseconds clock_offset(const comm::Group& ranks, const std::function<int64_t()>& clock = steady_now);

}  // namespace ddprun::run
