// The links between ranks that another launcher has started. They do what ddprun's launcher does for its own ranks:
// they notice lost ranks and hosts, name ranks for which others wait, and find the first cause of a failure.
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
// has been silent for Hub::kSilence. The functions are thread-safe.
class RankLink {
 public:
  using Clock = std::chrono::steady_clock;
  // The thread calls it with the first cause if this rank still runs kGrace after another rank has failed. It ends the
  // process, or leaves it to its next collective, which ends with an error.
  using Stuck = std::function<void(ExitCode code, const std::string& cause)>;

  // Joins the other ranks. Collective. Throws as Connection, and Error(rendezvous) if ranks are missing.
  RankLink(const StoreAddress& server, const World& world, std::chrono::milliseconds timeout, Stuck stuck);
  // Without finish(), the other ranks see a lost rank.
  ~RankLink();
  RankLink(const RankLink&) = delete;
  RankLink& operator=(const RankLink&) = delete;

  // The rank sets its progress here, at its local rank.
  ProgressTable& progress() { return *table_; }
  // 1 after another rank has failed or is lost, otherwise 0: collectives then end (comm_plugin.h, abort_flag).
  const std::shared_ptr<std::atomic<int32_t>>& abort_flag() const { return abort_flag_; }

  // This rank no longer needs the others: from now on it may end, and the others do not see a lost rank.
  void finish();

  // This rank has failed with `error`: sends it to the others. If the rank has lost a peer (code `peer`), waits up to
  // one second for the first cause and returns it. Returns nothing for any other error, which is itself a cause, and if
  // finish() or failed() was called before.
  std::optional<Error> failed(const Error& error);

  static constexpr std::chrono::milliseconds kGrace{2000};

 private:
  void run();
  Clock::time_point turn(Clock::time_point now);
  void watch_progress(Clock::time_point now);
  void announce(std::unique_lock<std::mutex>& lock, const std::vector<RankEnd>& ends);
  std::vector<RankEnd> ends_with(const RankEnd& own) const;

  const World world_;
  const Stuck stuck_;
  const std::unique_ptr<ProgressTable> table_;
  const std::shared_ptr<std::atomic<int32_t>> abort_flag_ = std::make_shared<std::atomic<int32_t>>(0);

  std::mutex mutex_;  // protects everything below
  std::condition_variable changed_;
  Peers peers_;
  StallWatch stalls_{std::chrono::milliseconds(1200)};  // the progress of the other ranks is up to a second old
  std::future<void> printed_;                           // the last lines about stalls
  Clock::time_point next_check_{};
  std::optional<Clock::time_point> failing_since_;
  bool has_ended_ = false;  // finish() or failed() was called
  bool quit_ = false;
  std::thread thread_;
};

}  // namespace ddprun::launch
