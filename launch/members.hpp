// Which ranks train, in a job that survives the death of ranks and nodes.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/store.hpp"
#include "launch/job_link.hpp"

namespace ddprun::launch {

// In the launcher of node 0, which decides for all and reports each change to the ranks (members_key()). If fewer than
// `least` nodes are left, no rank trains until enough have come back. Single-threaded.
class Members {
 public:
  // At first all ranks of `link`. timeout: how long the job waits for nodes. store: that of the job.
  Members(const JobLink& link, int least, std::chrono::milliseconds timeout, std::unique_ptr<Store> store);

  // The news for all nodes, a line to print; empty if there is none. has_begun: whether the ranks have a state to go on
  // from. Throws as Store::set.
  std::string apply(const MemberChange& change, bool has_begun);
  // Whether the job waits for nodes; and whether they have not come in time, which is fatal().
  bool waits() const { return waits_ && !ranks_.empty(); }
  bool gives_up() const { return waits() && JobLink::Clock::now() >= give_up_; }
  // The job stops: no rank waits any more. Throws as Store::set.
  void stop_waiting();
  // The death after which the job cannot go on: no rank is left, or enough nodes have not come back in time.
  const std::optional<RankEnd>& fatal();

 private:
  void report(bool has_died = false);
  std::string others() const;

  std::set<int> ranks_;
  int nodes_, least_;
  const std::chrono::milliseconds timeout_;
  const std::unique_ptr<Store> store_;
  int changes_ = 0;
  bool waits_ = false;                  // until enough nodes are there, and a rank of theirs is ready
  RankEnd missed_;                      // the last node that was lost
  JobLink::Clock::time_point give_up_;  // how long it waits
  std::optional<RankEnd> fatal_;
};

}  // namespace ddprun::launch
