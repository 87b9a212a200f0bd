// Names the ranks for which the others wait, while the job runs.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "launch/progress.hpp"

namespace ddprun::launch {

// The last known progress of a rank.
struct RankPlace {
  int rank = 0;
  std::string host;
  Progress progress;
};

// Single-threaded. Does not read a clock.
class StallWatch {
 public:
  using Clock = std::chrono::steady_clock;

  // `ranks`: the places of all ranks now, in rank order. Returns the lines to print: for ranks that have been in one
  // place for kFirst while others wait in a collective; again after twice that time, and so on. Reports nothing while
  // no rank is in a collective: a long step is not a stall.
  std::vector<std::string> look(const std::vector<RankPlace>& ranks, Clock::time_point now);

  static constexpr std::chrono::milliseconds kFirst{5000};

 private:
  struct Seen {
    Progress progress;
    Clock::time_point since;
    std::chrono::milliseconds next{0};  // report when it has been there for so long
  };
  std::map<int, Seen> seen_;
};

}  // namespace ddprun::launch
