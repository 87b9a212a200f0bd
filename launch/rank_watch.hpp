// What ddprun's launcher does for its own ranks, for ranks that another launcher has started: notices lost ranks and
// hosts, names ranks for which others wait, and finds the first cause of a failure.
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
#include "launch/job_link.hpp"
#include "launch/progress.hpp"
#include "launch/world.hpp"

namespace ddprun::launch {

// A thread of this rank with its link to the other ranks, whose server is in rank 0. A rank is lost when its connection
// ends, or has been silent for Hub::kSilence. The functions are thread-safe.
class RankWatch {
 public:
  using Clock = std::chrono::steady_clock;
  // The thread calls it with the first cause if this rank still runs kGrace after another rank has failed. It ends the
  // process, or leaves it to its next collective, which ends with an error.
  using Stuck = std::function<void(ExitCode code, const std::string& cause)>;

  // Joins the other ranks. Collective. Throws as Connection, and Error(rendezvous) if ranks are missing.
  RankWatch(const StoreAddress& server, const World& world, std::chrono::milliseconds timeout, Stuck stuck);
  // Without finish(), the other ranks see a lost rank.
  ~RankWatch();

  // The rank sets its progress here, at its local rank.
  ProgressTable& progress() { return table_; }
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
  void run(const std::stop_token& stop);
  void turn(Clock::time_point now);
  void watch_progress();
  void announce(std::unique_lock<std::mutex>& lock, const std::vector<RankEnd>& ends);
  std::vector<RankEnd> ends_with(const RankEnd& own) const;

  const World world_;
  const Stuck stuck_;
  ProgressTable table_;
  const std::shared_ptr<std::atomic<int32_t>> abort_flag_ = std::make_shared<std::atomic<int32_t>>(0);

  std::mutex mutex_;  // protects everything below
  std::condition_variable changed_;
  JobLink link_;
  std::future<void> printed_;  // the last lines about stalls
  bool has_ended_ = false;     // finish() or failed() was called
  std::jthread thread_;
};

}  // namespace ddprun::launch
