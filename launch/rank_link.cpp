#include "launch/rank_link.hpp"

#include <poll.h>

#include <algorithm>
#include <csignal>

#include "base/log.hpp"
#include "launch/first_cause.hpp"
#include "launch/net/address.hpp"
#include "launch/signals.hpp"

namespace ddprun::launch {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kCheckInterval{1000};  // between two checks of the progress of the ranks
constexpr milliseconds kTurn{100};            // the longest time between two turns
constexpr milliseconds kGather{100};          // failures that follow from the first one arrive meanwhile
constexpr milliseconds kUntilKnown{1000};     // how long a rank that has lost a peer waits for the first cause

void show_own_stack() {
  send_held_signal(SIGUSR2, kShowStack);
}

// Neighbouring ranks of one host that were lost together become one entry, for one message.
std::vector<RankEnd> merge_lost(const std::vector<RankEnd>& ends) {
  std::vector<RankEnd> merged;
  for (const RankEnd& end : ends) {
    RankEnd* before = merged.empty() ? nullptr : &merged.back();
    const bool same = before != nullptr && before->lost > 0 && end.lost > 0 && before->host == end.host &&
                      before->rank + before->lost == end.rank && before->silent == end.silent;
    if (same) {
      before->lost += end.lost;
    } else {
      merged.push_back(end);
    }
  }
  return merged;
}

}  // namespace

RankLink::RankLink(const StoreAddress& server, const World& world, milliseconds timeout, Stuck stuck)
    : world_(world),
      stuck_(std::move(stuck)),
      table_(ProgressTable::in_memory(std::max(world.local_size, world.local_rank + 1))),
      peers_(server, world.rank, world.size, {host_name(), 1, 0}, timeout) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

RankLink::~RankLink() {
  {
    const std::lock_guard lock(mutex_);
    quit_ = true;
    if (!has_ended_) peers_.disconnect();
  }
  thread_.join();
}

void RankLink::finish() {
  std::unique_lock lock(mutex_);
  if (has_ended_) return;
  announce(lock, {});
}

// Returns when the server has passed it on: the server ends with rank 0.
void RankLink::announce(std::unique_lock<std::mutex>& lock, const std::vector<RankEnd>& ends) {
  has_ended_ = true;
  if (!ends.empty()) peers_.announce_failing();
  peers_.announce_ends(ends);
  changed_.wait_for(lock, kUntilKnown, [this] { return peers_.has_announced_ends() || !peers_.connected(); });
}

void RankLink::run() {
  std::unique_lock lock(mutex_);
  while (!quit_ && peers_.connected()) {
    const auto now = Clock::now();
    const auto next = std::min(turn(now), now + kTurn);
    pollfd entry{peers_.fd(), POLLIN, 0};
    lock.unlock();
    ::poll(&entry, 1, static_cast<int>(std::max<long>(0, std::chrono::ceil<milliseconds>(next - now).count())));
    lock.lock();
  }
  // The server is gone with rank 0. No more events come, but this thread may still have to end the rank.
  while (!quit_ && !has_ended_ && failing_since_) {
    turn(Clock::now());
    changed_.wait_for(lock, kTurn);
  }
}

RankLink::Clock::time_point RankLink::turn(Clock::time_point now) {
  const auto next = peers_.turn();
  if (has_ended_) {
    changed_.notify_all();
    return next;
  }
  if (peers_.failing() && !failing_since_) {
    failing_since_ = now;
    changed_.notify_all();
  }
  if (!failing_since_) {
    for (const RankProgress& rank : peers_.take_stuck()) {
      if (rank.rank == world_.rank) show_own_stack();
    }
    watch_progress(now);
    return next;
  }
  if (now >= *failing_since_ + kGather) abort_flag_->store(1);
  if (now < *failing_since_ + kGrace) return next;
  has_ended_ = true;
  const std::vector<RankEnd> ends = merge_lost(peers_.ends());
  const RankEnd* cause = first_cause(ends);
  stuck_(ExitCode::peer, cause == nullptr ? "another rank has failed" : describe(*cause) + elsewhere(*cause, ends));
  return next;
}

void RankLink::watch_progress(Clock::time_point now) {
  if (now < next_check_) return;
  next_check_ = now + kCheckInterval;
  const Progress own = table_->get(world_.local_rank);
  if (world_.rank != 0) return peers_.report_progress({own});
  std::vector<RankProgress> ranks{{0, host_name(), own}};
  const auto others = peers_.progress();
  ranks.insert(ranks.end(), others.begin(), others.end());
  const std::vector<StallWatch::Line> lines = stalls_.check(ranks, now);
  for (const StallWatch::Line& line : lines) {
    if (!line.stuck) continue;
    peers_.announce_stuck(*line.stuck);
    if (line.stuck->rank == world_.rank) show_own_stack();
  }
  // If no process reads stderr now, that must not stop this thread: the others would take this rank as lost.
  const bool is_free = !printed_.valid() || printed_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  if (lines.empty() || !is_free) return;
  printed_ = std::async(std::launch::async, [lines] {
    for (const StallWatch::Line& line : lines) log::info(line.text);
  });
}

std::optional<Error> RankLink::failed(const Error& error) {
  std::unique_lock lock(mutex_);
  if (has_ended_) return std::nullopt;
  RankEnd own = peers_.own_end(error);
  own.progress = table_->get(world_.local_rank);
  std::vector<RankEnd> ends;
  announce(lock, {own});
  if (error.code() != ExitCode::peer) {
    peers_.disconnect();
    return std::nullopt;
  }
  const RankEnd* cause = nullptr;
  const auto is_known = [&] {
    ends = ends_with(own);
    cause = first_cause(ends);
    return !peers_.connected() || !is_consequence(*cause);
  };
  changed_.wait_for(lock, kUntilKnown, is_known);
  peers_.disconnect();
  const ExitCode code = cause->rank == world_.rank ? error.code() : ExitCode::peer;
  return Error(code, describe(*cause) + elsewhere(*cause, ends));
}

// How the ranks ended. On rank 0 also the progress of the ranks that still run.
std::vector<RankEnd> RankLink::ends_with(const RankEnd& own) const {
  std::vector<RankEnd> ends = merge_lost(peers_.ends());
  ends.push_back(own);
  for (const RankProgress& rank : peers_.progress()) {
    const auto is_it = [&](const RankEnd& end) {
      return end.rank <= rank.rank && rank.rank < end.rank + std::max(end.lost, 1);
    };
    if (std::any_of(ends.begin(), ends.end(), is_it)) continue;
    RankEnd running;
    running.rank = rank.rank;
    running.progress = rank.progress;
    ends.push_back(running);
  }
  return ends;
}

}  // namespace ddprun::launch
