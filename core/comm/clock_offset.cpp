#include "comm/clock_offset.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <vector>

namespace ddprun::comm {
namespace {

constexpr int kRounds = 16;

}  // namespace

int64_t steady_now() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

std::chrono::nanoseconds clock_offset(CommBackend& backend, std::chrono::milliseconds timeout,
                                      const std::function<int64_t()>& clock) {
  int64_t least = std::numeric_limits<int64_t>::min(), most = std::numeric_limits<int64_t>::max();
  // The begin of this round, and the end of the round before it.
  std::array<int64_t, 2> times{0, 0};
  std::vector<int64_t> all(2 * static_cast<std::size_t>(backend.size()));
  int64_t begin_before = 0;
  for (int round = 0; round <= kRounds; ++round) {
    const int64_t begin = clock();
    times = {begin, times[1]};
    backend.allgather({.send = times.data(), .recv = all.data(), .count = 2, .dtype = DType::int64}).wait(timeout);
    times[1] = clock();
    most = std::min(most, times[1] - all[0]);                       // rank 0 had begun before this rank ended
    if (round > 0) least = std::max(least, begin_before - all[1]);  // and this rank before rank 0 had ended
    begin_before = begin;
  }
  if (backend.rank() == 0 || (least <= 0 && most >= 0)) return std::chrono::nanoseconds(0);
  return std::chrono::nanoseconds(least + (most - least) / 2);
}

}  // namespace ddprun::comm
