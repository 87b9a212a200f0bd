// How a rank waits for another one, over shared memory or over messages: it spins while the wait may be short, then
// yields, then sleeps. The wait fails at the deadline, after an abort, and if the peer is gone.
#pragma once

#include <sched.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>

#include "ddprun/plugin/comm_plugin.hpp"

namespace ddprun::shm {

// What a poll costs: a read of memory some nanoseconds, a system call about a microsecond.
enum class Poll { memory, system_call };

class Waiter {
 public:
  using Clock = std::chrono::steady_clock;

  // `ranks_here`: the number of ranks on this host, including this one. lost() returns a rank that will not come any
  // more (dead, or gone from the group), or -1; the waiting thread calls it every 10 ms.
  Waiter(const Host& host, int ranks_here, Poll poll, std::function<int()> lost);

  // Begins a collective: its waits end host.deadline() after the first of them became slow. `name` is part of the error
  // message, and must live as long as the collective.
  void begin(const char* name) noexcept {
    name_ = name;
    culprit_ = -1;
    deadline_.reset();
  }

  // Returns once ready() is true. ready() is polled, and may do the work that makes it true. `awaited`: the rank that
  // it depends on, or -1. In a long wait, sleep(longest) is called between two polls; it may return early. Throws
  // CommError (CommStatus::timeout, CommStatus::aborted or CommStatus::peer_lost), but never if ready() is true by
  // then.
  template <class Ready, class Sleep>
  void until(const Ready& ready, int awaited, const Sleep& sleep);

  // The rank that the last failed wait blames, or -1.
  int culprit() const noexcept { return culprit_; }

  // Ends every wait, now and later. Any thread, any number of times.
  void abort() noexcept { aborted_.store(true, std::memory_order_relaxed); }
  bool is_aborted() const noexcept { return aborted_.load(std::memory_order_relaxed) || host_.aborted(); }

 private:
  static void relax() noexcept;
  // CommStatus::ok, or the reason to end the wait now.
  CommStatus trouble(Clock::time_point now, int awaited);
  [[noreturn]] void fail(CommStatus status) const;

  const Host host_;
  const std::function<int()> lost_;
  const int spins_;
  const std::chrono::microseconds yields_;  // for this time, then sleeps
  const char* name_ = "";
  int culprit_ = -1;
  std::optional<Clock::time_point> deadline_;
  std::atomic<bool> aborted_{false};
};

template <class Ready, class Sleep>
void Waiter::until(const Ready& ready, int awaited, const Sleep& sleep) {
  using namespace std::chrono_literals;
  for (int i = 0; i < spins_; ++i) {
    if (ready()) return;
    relax();
  }
  auto now = Clock::now();
  const auto start = now;
  auto next_check = start + 10ms;
  if (!deadline_) deadline_ = now + host_.deadline();
  for (; !ready(); now = Clock::now()) {
    if (now >= next_check) {
      // ready() is called once more after the peer was seen to be gone: what the peer did before counts.
      if (const auto status = trouble(now, awaited); status != CommStatus::ok && !ready()) fail(status);
      next_check = now + 10ms;
    }
    if (now - start < yields_) {
      sched_yield();
    } else {
      sleep(std::chrono::nanoseconds(next_check - now));
    }
  }
}

}  // namespace ddprun::shm
