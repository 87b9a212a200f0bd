// Which rank's end was the first cause, and which were only its echoes.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "launch/failure.hpp"
#include "launch/progress.hpp"

namespace ddprun::launch {

// How a rank ended.
struct RankEnd {
  int rank = 0;
  int pid = 0;
  std::chrono::nanoseconds time{};  // when the launcher saw it; CLOCK_MONOTONIC
  int signal = 0;                   // the signal that killed it, else 0
  int exit_code = 0;
  bool killed_by_launcher = false;
  bool stopped = false;            // it had been under SIGSTOP for too long
  std::optional<Failure> failure;  // what it reported itself
  Progress progress;               // where it was
  bool memory_limit = false;       // the kernel killed a process of this job at its memory limit
};

// The first cause among `ends`, or none when nobody failed: a death by a signal that the launcher did not send goes
// before a failure of its own (a report, or an exit code other than 5), and that before the code 5 of those who lost a
// peer. A rank that reported before it died counts by its report: what happens after that is its way down. Ties: the
// earlier one.
const RankEnd* first_cause(const std::vector<RankEnd>& ends);

// The exit code of the whole job with this cause.
ExitCode exit_code_of(const RankEnd& cause);

// "rank 3 (host, pid 4711) step 57 phase allreduce bucket 2: killed by signal 9 (SIGKILL)". The step is left out before
// the first, the bucket where there is none. May have several lines where the rank reported several.
std::string describe(const RankEnd& cause, const std::string& host);

// Where a rank lost its peers by its own word, who was elsewhere: "; rank 1 was in step 57 phase data, ranks 2 and 3 in
// step 56 phase barrier", the fewest first, since they are the likeliest culprits. Empty where all were in one place, and
// for any other cause.
std::string elsewhere(const RankEnd& cause, const std::vector<RankEnd>& ends);

}  // namespace ddprun::launch
