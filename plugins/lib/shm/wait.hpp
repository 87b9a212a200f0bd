// How a rank waits for another, over shared memory and over messages alike: it spins where that can be short, then
// lets others run, then sleeps. The wait fails at the deadline, after an abort, and when the peer is gone.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>

#include "ddprun/plugin/comm_plugin.hpp"

namespace ddprun::shm {

class Waiter {
 public:
  using Clock = std::chrono::steady_clock;

  // `ranks_here`: ranks that share this host's cores with us, ourselves included. lost(): a rank that will not come any
  // more (dead, or gone from the group), or -1; asked every 10 ms of waiting, by the waiting thread.
  Waiter(const Host& host, int ranks_here, std::function<int()> lost);

  // A collective begins: waits from now on end host.deadline() after the first of them became slow. `name` stands in
  // what a failed wait says, and lives as long as the collective.
  void begin(const char* name) noexcept {
    name_ = name;
    deadline_.reset();
  }

  // Returns when ready() is true; it is asked again and again, and may do the work that makes it true. `awaited`: the
  // rank it depends on, or -1. Once waiting has become long, sleep(longest) is called between two askings; it may
  // return early. Throws CommError: CommStatus::timeout, CommStatus::aborted or CommStatus::peer_lost; never when
  // ready() is true by then.
  template <class Ready, class Sleep>
  void until(const Ready& ready, int awaited, const Sleep& sleep);

  // The rank that the last failed wait blames, or -1.
  int culprit() const noexcept { return culprit_; }

  // Ends every wait, now and later. Any thread, any number of times.
  void abort() noexcept { aborted_.store(true, std::memory_order_relaxed); }
  bool is_aborted() const noexcept { return aborted_.load(std::memory_order_relaxed) || host_.aborted(); }

 private:
  static void relax() noexcept;
  static void yield() noexcept;
  // CommStatus::ok, or what ends the wait now.
  CommStatus trouble(Clock::time_point now, int awaited);
  [[noreturn]] void fail(CommStatus status) const;

  const Host host_;
  const std::function<int()> lost_;
  const int spins_;
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
  auto look_at = start + 10ms;
  if (!deadline_) deadline_ = now + host_.deadline();
  for (; !ready(); now = Clock::now()) {
    if (now >= look_at) {
      // What the peer has done before it went counts: asked once more, after it was seen to be gone.
      if (const auto status = trouble(now, awaited); status != CommStatus::ok && !ready()) fail(status);
      look_at = now + 10ms;
    }
    if (now - start < 200us) {
      yield();
    } else {
      sleep(std::chrono::nanoseconds(look_at - now));
    }
  }
}

}  // namespace ddprun::shm
