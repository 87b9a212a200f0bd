#include "launch/stall_watch.hpp"

#include <algorithm>
#include <utility>

namespace ddprun::launch {
namespace {

bool in_collective(const Progress& progress) {
  return progress.phase == Phase::allreduce || progress.phase == Phase::broadcast || progress.phase == Phase::barrier;
}

bool same_position(const Progress& a, const Progress& b) {
  return a.step == b.step && a.phase == b.phase && a.bucket == b.bucket;
}

}  // namespace

std::vector<StallWatch::Line> StallWatch::check(const std::vector<RankProgress>& ranks, Clock::time_point now) {
  std::vector<Line> lines;
  if (now - std::exchange(checked_, now) > kFirst) seen_.clear();  // nobody watched the ranks while the job waited
  add_hanging(ranks, now, lines);
  add_slow(ranks, now, lines);
  return lines;
}

void StallWatch::note_hang(const RankProgress& rank) {
  Seen& seen = seen_[rank.rank];
  seen.progress = rank.progress;
  seen.hangs = true;
}

bool StallWatch::hangs(int rank, const Progress& progress) const {
  const auto seen = seen_.find(rank);
  return seen != seen_.end() && seen->second.hangs && same_position(seen->second.progress, progress);
}

void StallWatch::add_slow(const std::vector<RankProgress>& ranks, Clock::time_point now, std::vector<Line>& lines) {
  for (const RankProgress& rank : ranks) {
    std::vector<int64_t> others;
    for (const RankProgress& other : ranks) {
      if (other.rank != rank.rank && other.progress.own_us > 0) others.push_back(other.progress.own_us);
    }
    if (others.empty()) continue;
    const auto middle = others.begin() + static_cast<std::ptrdiff_t>(others.size() / 2);
    std::nth_element(others.begin(), middle, others.end());
    const int64_t own = rank.progress.own_us;
    Seen& seen = seen_[rank.rank];
    if (own < kSlow * *middle || own - *middle < kSlowBy.count()) {
      seen.slow_since.reset();
      continue;
    }
    if (!seen.slow_since) seen.slow_since = now;
    if (now - *seen.slow_since < age_ || now < seen.next_slow) continue;
    seen.next_slow = now + kSlowAgain;
    lines.push_back({"rank " + std::to_string(rank.rank) + " (" + rank.host +
                         ") is slow: its own part of a step takes " + std::to_string(own / 1000) +
                         " ms, that of the other ranks " + std::to_string(*middle / 1000) + " ms; they wait for it",
                     std::nullopt});
  }
}

void StallWatch::add_hanging(const std::vector<RankProgress>& ranks, Clock::time_point now, std::vector<Line>& lines) {
  for (const RankProgress& rank : ranks) {
    Seen& seen = seen_[rank.rank];
    if (seen.next.count() > 0 && same_position(seen.progress, rank.progress)) continue;
    seen.progress = rank.progress;
    seen.since = now;
    seen.next = kFirst;
    seen.hangs = false;
  }
  const auto step = [](const RankProgress& rank) { return in_collective(rank.progress) ? rank.progress.step : -1; };
  const auto waiting = std::ranges::max_element(ranks, {}, step);  // in the farthest collective, if any is in one
  if (waiting == ranks.end() || !in_collective(waiting->progress)) return;
  const auto waits = [&](const RankProgress& rank) { return same_position(rank.progress, waiting->progress); };
  const auto count = std::ranges::count_if(ranks, waits);
  const bool all = count == static_cast<std::ptrdiff_t>(ranks.size());
  for (const RankProgress& rank : ranks) {
    Seen& seen = seen_[rank.rank];
    const auto time = std::chrono::duration_cast<std::chrono::milliseconds>(now - seen.since);
    if (time < seen.next || (waits(rank) && !all)) continue;
    seen.next = 2 * time;
    const std::string there = " in " + text(rank.progress) + " for " + std::to_string(time.count() / 1000) + " s";
    if (all) {
      lines.push_back({"all ranks have been" + there + ": the network between them may be down", std::nullopt});
      for (auto& [rank, other] : seen_) other.next = 2 * time;
      return;
    }
    seen.hangs = true;
    lines.push_back({"rank " + std::to_string(rank.rank) + " (" + rank.host + ") has been" + there + "; " +
                         std::to_string(count) + (count == 1 ? " rank waits" : " ranks wait") + " in " +
                         text(waiting->progress),
                     rank});
  }
}

}  // namespace ddprun::launch
