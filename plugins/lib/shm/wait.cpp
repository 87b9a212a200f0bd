#include "shm/wait.hpp"

#include <algorithm>
#include <string>

#include "ddprun/plugin/host.hpp"

namespace ddprun::shm {
namespace {

// Spinning suits waits of some microseconds. With fewer cores than ranks, it keeps the peer from running.
constexpr int kSpins = 1000;
constexpr int kSpinsWhereCoresAreShort = 10;
// Compared with a system call, sched_yield costs little. Without it, a rank that shares a core with its peer, although
// another core is free, would spin for 300 us before the peer can run.
constexpr int kSpinsWithSystemCalls = 10;
constexpr std::chrono::microseconds kYields(200), kYieldsWithSystemCalls(1000);

}  // namespace

Waiter::Waiter(const Host& host, int ranks_here, Poll poll, std::function<int()> lost)
    : host_(host),
      lost_(std::move(lost)),
      spins_(poll == Poll::system_call      ? kSpinsWithSystemCalls
             : ranks_here <= usable_cores() ? kSpins
                                            : kSpinsWhereCoresAreShort),
      yields_(poll == Poll::system_call ? kYieldsWithSystemCalls : kYields) {}

void Waiter::relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

CommStatus Waiter::trouble(Clock::time_point now, int awaited) {
  culprit_ = -1;
  if (is_aborted()) return CommStatus::aborted;
  culprit_ = lost_();
  if (culprit_ >= 0) return CommStatus::peer_lost;
  culprit_ = awaited;
  return now >= *deadline_ ? CommStatus::timeout : CommStatus::ok;
}

void Waiter::fail(CommStatus status) const {
  const std::string who = culprit_ < 0 ? "a peer" : "rank " + std::to_string(culprit_);
  switch (status) {
    case CommStatus::peer_lost: throw CommError(status, std::string(name_) + ": " + who + " is gone");
    case CommStatus::timeout: {
      const auto limit = std::to_string(host_.deadline().count());
      throw CommError(status, std::string(name_) + ": no answer from " + who + " within " + limit + " ms");
    }
    default: throw CommError(status, std::string(name_) + ": aborted");
  }
}

}  // namespace ddprun::shm
