// The links between ranks that another launcher has started. They do for such a job what ddprun's launcher does for its
// own: they notice lost ranks and hosts, name ranks that hold the job up, and find the first cause of a failure.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "ddprun/error.hpp"
#include "launch/peers.hpp"
#include "launch/progress.hpp"
#include "launch/stall_watch.hpp"
#include "launch/world.hpp"

namespace ddprun::launch {

// A thread of this rank that is connected to the store's server in rank 0. A rank is lost when its connection ends, or
// after Hub::kSilence without a sign of life.
class RankLink {
 public:
  using Clock = std::chrono::steady_clock;
  // Called by the thread if this rank is still running kGrace after another one has failed, with the first cause. It
  // must end the process.
  using Stuck = std::function<void(ExitCode code, const std::string& cause)>;

  // Joins the other ranks. Collective. Throws as Connection, and Error(rendezvous) if ranks are missing.
  RankLink(const StoreAddress& server, const World& world, std::chrono::milliseconds timeout, Stuck stuck);
  // Without finish(), the other ranks see a lost rank.
  ~RankLink();
  RankLink(const RankLink&) = delete;
  RankLink& operator=(const RankLink&) = delete;

  // Where this rank is, by its local rank; set by the rank. Thread-safe.
  ProgressTable& progress() { return *table_; }
  // Raised once another rank has failed or is lost: collectives then end (comm_plugin.h, abort_flag).
  const std::shared_ptr<std::atomic<int32_t>>& abort_flag() const { return abort_flag_; }

  // This rank needs the others no longer: from now on it may end without being missed.
  void finish();

  // This rank has failed. Tells the others. If it has lost a peer (code `peer`), returns the first cause, for which it
  // waits up to one second. Otherwise nothing: this failure is a cause. Nothing too if this rank has told before.
  std::optional<Error> failed(const Error& error);

  static constexpr std::chrono::milliseconds kGrace{2000};

 private:
  void run();
  Clock::time_point turn(Clock::time_point now);
  void watch_progress(Clock::time_point now);
  void announce(std::unique_lock<std::mutex>& lock, const std::vector<RankEnd>& ends);
  RankEnd own_end(const Error& error) const;
  std::vector<RankEnd> ends_with(const RankEnd& own) const;

  const World world_;
  const Stuck stuck_;
  const std::unique_ptr<ProgressTable> table_;
  const std::shared_ptr<std::atomic<int32_t>> abort_flag_ = std::make_shared<std::atomic<int32_t>>(0);

  std::mutex mutex_;  // of everything below
  std::condition_variable heard_;
  Peers peers_;
  StallWatch stalls_;
  std::future<void> printed_;  // the last lines about stalls
  Clock::time_point next_look_{};
  std::optional<Clock::time_point> failing_since_;
  bool has_ended_ = false;  // finish() or failed() was called
  bool quit_ = false;
  std::thread thread_;
};

}  // namespace ddprun::launch
