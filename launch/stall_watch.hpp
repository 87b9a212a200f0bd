// Names the ranks for which the others wait, while the job runs: those that hang, and those that are slow.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launch/progress.hpp"

namespace ddprun::launch {

// The last known progress of a rank.
struct RankProgress {
  int rank = 0;
  std::string host;
  Progress progress;
};

// Single-threaded. Does not read a clock.
class StallWatch {
 public:
  using Clock = std::chrono::steady_clock;

  struct Line {
    std::string text;
    std::optional<RankProgress> stuck;  // the others wait for this rank, which makes no progress
  };

  // `age`: how old the progress of a rank may be, compared with that of another one.
  explicit StallWatch(std::chrono::milliseconds age = {}) : age_(age) {}

  // `ranks`: the progress of all ranks now, in rank order. Call it at least once a second; after a long pause it begins
  // anew. Returns the lines to print. A rank hangs if it has been at one position for kFirst while others wait in a
  // collective; it is named again after twice that time, and so on. While no rank is in a collective, none is named: a
  // long step is not a stall. A rank is slow if its own part of a step (Progress::own_us) takes kSlow times the median
  // of the other ranks, and kSlowBy more, for as long as `age`. It is named again after kSlowAgain.
  std::vector<Line> check(const std::vector<RankProgress>& ranks, Clock::time_point now);

  // Another host has named the rank, because it hangs at this position.
  void note_hang(const RankProgress& rank);
  // Whether the rank was named because it hangs, and is still there.
  bool hangs(int rank, const Progress& progress) const;

  static constexpr std::chrono::milliseconds kFirst{5000};
  static constexpr std::chrono::milliseconds kSlowAgain{60000};
  static constexpr std::chrono::microseconds kSlowBy{50000};
  static constexpr int64_t kSlow = 4;

 private:
  struct Seen {
    Progress progress;
    Clock::time_point since;
    std::chrono::milliseconds next{0};  // report when it has been there for so long
    bool hangs = false;                 // it was reported alone
    std::optional<Clock::time_point> slow_since;
    Clock::time_point next_slow;  // report that it is slow, not earlier
  };

  void add_hanging(const std::vector<RankProgress>& ranks, Clock::time_point now, std::vector<Line>& lines);
  void add_slow(const std::vector<RankProgress>& ranks, Clock::time_point now, std::vector<Line>& lines);

  const std::chrono::milliseconds age_;
  std::map<int, Seen> seen_;
  Clock::time_point checked_;
};

}  // namespace ddprun::launch
