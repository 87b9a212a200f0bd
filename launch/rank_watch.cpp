#include "launch/rank_watch.hpp"

#include <poll.h>

#include <algorithm>

#include "base/log.hpp"
#include "base/subprocess.hpp"
#include "launch/first_cause.hpp"
#include "launch/net/address.hpp"
#include "launch/signals.hpp"

namespace ddprun::launch {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kCheckInterval{1000};  // between two checks of the progress of the ranks
constexpr int kTurn = 100;                    // milliseconds: the longest time between two turns
constexpr milliseconds kUntilKnown{1000};     // how long a rank that has lost a peer waits for the first cause

}  // namespace

RankWatch::RankWatch(const StoreAddress& server, const World& world, milliseconds timeout, Stuck stuck)
    : world_(world),
      stuck_(std::move(stuck)),
      table_("", std::max(world.local_size, world.local_rank + 1)),
      link_(server, world.rank, world.size, {host_name(), 1, 0}, timeout) {
  thread_ = quiet_thread<std::jthread>([this](const std::stop_token& stop) { run(stop); });
}

RankWatch::~RankWatch() {
  const std::lock_guard lock(mutex_);
  thread_.request_stop();  // before the thread can see the lost connection, and end this rank
  if (!has_ended_) link_.disconnect();
}

void RankWatch::finish() {
  std::unique_lock lock(mutex_);
  if (!has_ended_) announce(lock, {});
}

// Returns when the server has passed it on: the server ends with rank 0.
void RankWatch::announce(std::unique_lock<std::mutex>& lock, const std::vector<RankEnd>& ends) {
  has_ended_ = true;
  if (!ends.empty()) link_.announce_failing();
  link_.announce_ends(ends);
  changed_.wait_for(lock, kUntilKnown, [this] { return link_.has_announced_ends() || !link_.connected(); });
}

void RankWatch::run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  // The server is gone with rank 0: no more events come, but this thread may still have to end the rank.
  while (!stop.stop_requested() && (link_.connected() || (link_.failing() && !has_ended_))) {
    turn(Clock::now());
    pollfd entry{link_.fd(), POLLIN, 0};
    lock.unlock();
    ::poll(&entry, 1, kTurn);
    lock.lock();
  }
}

void RankWatch::turn(Clock::time_point now) {
  link_.turn();
  if (has_ended_) return changed_.notify_all();
  if (!link_.failing()) return watch_progress();
  if (now >= *link_.failing_since() + kCollect) abort_flag_->store(1);
  if (now < *link_.failing_since() + kGrace) return;
  has_ended_ = true;
  const std::vector<RankEnd> ends = link_.ends();
  const RankEnd* cause = first_cause(ends);
  stuck_(ExitCode::peer, cause == nullptr ? "another rank has failed" : describe(*cause) + elsewhere(*cause, ends));
}

void RankWatch::watch_progress() {
  const std::vector<std::string> lines = link_.watch({table_.get(world_.local_rank)}, kCheckInterval);
  for (const int rank : link_.take_stuck()) {
    if (rank == world_.rank) send_held_usr2(kShowStack);
  }
  // If no process reads stderr now, that must not stop this thread: the others would take this rank as lost.
  const bool is_free = !printed_.valid() || printed_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  if (lines.empty() || !is_free) return;
  printed_ = std::async(std::launch::async, [lines] {
    for (const std::string& line : lines) log::info(line);
  });
}

std::optional<Error> RankWatch::failed(const Error& error) {
  std::unique_lock lock(mutex_);
  if (has_ended_) return std::nullopt;
  RankEnd own = link_.own_end(error);
  own.progress = table_.get(world_.local_rank);
  std::vector<RankEnd> ends;
  announce(lock, {own});
  if (error.code() != ExitCode::peer) {
    link_.disconnect();
    return std::nullopt;
  }
  const RankEnd* cause = nullptr;
  const auto is_known = [&] {
    ends = ends_with(own);
    cause = first_cause(ends);
    return !link_.connected() || !is_consequence(*cause);
  };
  changed_.wait_for(lock, kUntilKnown, is_known);
  link_.disconnect();
  const ExitCode code = cause->rank == world_.rank ? error.code() : ExitCode::peer;
  return Error(code, describe(*cause) + elsewhere(*cause, ends));
}

// How the ranks ended. On rank 0 also the progress of the ranks that still run.
std::vector<RankEnd> RankWatch::ends_with(const RankEnd& own) const {
  std::vector<RankEnd> ends = link_.ends();
  ends.push_back(own);
  for (const RankProgress& rank : link_.progress()) {
    if (std::ranges::find(ends, rank.rank, &RankEnd::rank) != ends.end()) continue;
    ends.push_back({.rank = rank.rank, .progress = rank.progress});
  }
  return ends;
}

}  // namespace ddprun::launch
