// The ranks of a job as processes: how they are started and ended, and what became of each.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "launch/child.hpp"
#include "launch/first_cause.hpp"
#include "launch/guardian.hpp"
#include "launch/progress.hpp"

namespace ddprun::launch {

// One thread, the one that starts them.
class RankProcesses {
 public:
  using Clock = std::chrono::steady_clock;

  // Starts `count` of them. `folder` is the job's, `table` and `guardian` outlive this. Throws Error(failure) where one
  // cannot be started; then none is left.
  RankProcesses(const std::vector<std::string>& command, int count, std::string folder, const ProgressTable& table,
                Guardian& guardian);
  // Whatever is left of them is killed.
  ~RankProcesses();
  RankProcesses(const RankProcesses&) = delete;
  RankProcesses& operator=(const RankProcesses&) = delete;

  std::size_t live() const;
  // What rank number `rank` prints comes out of these pipes.
  Child& child(std::size_t rank) { return ranks_[rank].child; }

  // Takes in what has become of them since the last look: ends, stops, reports. Returns whether one has failed, now or
  // before.
  bool look();
  // From when on a rank will have been under SIGSTOP for too long; none where none is.
  std::optional<Clock::time_point> stopped_too_long() const;

  // They have been asked to stop: one that ends with this signal's exit code has done so.
  void expect_stop_by(int signal) { stop_signal_ = signal; }
  // Ends all that live, with their process groups. What they report from here on is no cause of anything.
  void kill();
  bool killed() const { return killed_at_.has_value(); }

  // How they ended, when none lives.
  std::vector<RankEnd> ends() const;

 private:
  struct Rank {
    Child child;
    std::optional<Clock::time_point> stopped;
    std::optional<RankEnd> end;
  };

  void look_at(Rank& rank);
  void reap(Rank& rank);
  int wait_for(const Rank& rank) const;
  RankEnd end_of(const Rank& rank, int status) const;
  std::optional<Failure> reported(int rank) const;

  const std::string folder_;
  const ProgressTable& board_;
  Guardian& guardian_;
  std::vector<Rank> ranks_;
  bool failed_ = false;
  int stop_signal_ = 0;
  std::optional<Clock::time_point> killed_at_;
};

}  // namespace ddprun::launch
