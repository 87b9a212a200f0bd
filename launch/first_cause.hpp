// Finds the rank whose failure was the first cause; the others failed as a consequence.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "launch/failure.hpp"
#include "launch/progress.hpp"

namespace ddprun::launch {

// How a rank ended; or how all ranks of a node ended, if the node was lost.
struct RankEnd {
  int rank = 0;
  int pid = 0;
  std::string host{};
  std::chrono::nanoseconds time{};  // when the launcher noticed; CLOCK_MONOTONIC
  int signal = 0;                   // the signal that killed it, otherwise 0
  int exit_code = 0;
  bool killed_by_launcher = false;
  bool stopped = false;              // it was under SIGSTOP for too long
  bool hung = false;                 // it had been named as a rank that hangs, and did not move any more
  std::optional<Failure> failure{};  // what the rank itself reported
  Progress progress{};               // its last progress
  std::string crash{};               // signal: where the rank was, as it reported itself; often ""
  bool memory_limit = false;         // the kernel killed a process of this job at its memory limit
  int lost = 0;                      // the number of ranks, from `rank`, of a node that was lost; otherwise 0
  bool silent = false;               // lost: nothing came from there any more; otherwise its connection has ended
};

// The first cause among `ends`, or null if no rank failed. First come deaths by a signal that the launcher did not
// send, and lost nodes. Then come a rank's own failures (a report, SIGABRT, or an exit code other than 5), and then
// ranks that hung. Last comes code 5 of ranks that lost a peer. A rank that reported before it died counts by its
// report, because its death only followed from that. Among equals, the earlier one.
const RankEnd* first_cause(const std::vector<RankEnd>& ends);

// Whether the rank failed because it lost a peer, so that the first cause is another one.
bool is_consequence(const RankEnd& end);

// The exit code of the whole job for this cause. A rank of ddprun that exits with a code of none of its errors has
// failed; that of a user's program keeps its code.
ExitCode exit_code_of(const RankEnd& cause, bool users_program = false);

// "rank 3 (host, pid 4711) step 57 phase allreduce bucket 2: killed by signal 9 (SIGKILL)". There is no step before the
// first one, and no bucket outside an allreduce. It has several lines if the rank's report has.
std::string describe(const RankEnd& cause);

// What happened on other ranks, as the end of the message. If the cause is a rank that lost its peers: the ranks at
// another position: "; rank 1 was in step 57 phase data, ranks 2 and 3 in step 56 phase barrier"; the smallest group
// first, because it is the likeliest cause. If the cause is a lost node: the other lost nodes. If the cause is a rank
// that hung: the first report of a rank that waited for it. Otherwise "".
std::string elsewhere(const RankEnd& cause, const std::vector<RankEnd>& ends);

}  // namespace ddprun::launch
