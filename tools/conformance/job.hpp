// The suite as several processes: one on each node, or one for each rank of another launcher. Each process starts the
// ranks of its node. All processes get the outcomes of all ranks, and process 0 prints.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/store.hpp"
#include "cli/console/node_options.hpp"
#include "launch/net/net_store.hpp"
#include "launch/rank_watch.hpp"
#include "testing/ranks.hpp"
#include "tools/lib/job.hpp"

namespace ddprun::conformance {

// One thread. Its collective functions throw Error(rendezvous) if a process does not come, Error(peer) if process 0 is
// lost.
class Job {
 public:
  // Meets the others. `identity`: what must be equal (launch/rendezvous.hpp). Collective. Throws Error: usage for the
  // node options, rendezvous.
  Job(std::unique_ptr<tools::Job> processes, const console::NodeOptions& options, const std::string& identity);

  bool leads() const { return processes_->leads(); }
  int size() const { return size_; }
  int ranks_here() const { return ranks_here_; }
  // The address of this host by which the others reach it; "" if it is not known, or if there is one host.
  const std::string& address() const { return processes_->address(); }
  std::string text() const { return processes_->text(); }

  // This process has printed or returned its results, and no longer needs the others.
  void finish() { link_->finish(); }

  // For run_ranks() of the next world.
  testing::Placement placement();
  // The outcomes of all ranks, in rank order. Collective.
  std::vector<testing::Outcome> gather(const std::vector<testing::Outcome>& own);
  // The texts of all processes, each text once. Collective.
  std::vector<std::string> gather(const std::vector<std::string>& own);

 private:
  std::vector<std::string> gather_texts(const std::string& own);

  std::unique_ptr<tools::Job> processes_;
  std::unique_ptr<Store> own_store_;  // null: that of the processes
  launch::StoreAddress at_;           // of the store of the ranks, to which they connect themselves
  Store* store_ = nullptr;
  std::unique_ptr<launch::RankWatch> link_;  // ends this process soon after another one
  int first_rank_ = 0;
  int ranks_here_ = 1;
  int size_ = 0;
  int worlds_ = 0;
  int gathers_ = 0;
};

}  // namespace ddprun::conformance
