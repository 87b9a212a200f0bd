// Membership: which ranks of a job train, after some have died and others have been started in their place. Under
// ddprun's launcher, which reports each change in the job's store. Torch-free.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/store.hpp"

namespace ddprun::elastic {

// One rank's view. Single-threaded, except for watch().
class Membership {
 public:
  // job: the store of the whole job; it outlives this object. rank, size: the number of this rank, and the number of
  // ranks, as the job began.
  Membership(Store& job, int rank, int size);

  int changes() const { return changes_; }  // how often the members have changed so far
  // Among the members; rank() is -1 if this rank is none.
  int rank() const { return rank_; }
  int size() const { return static_cast<int>(members_.size()); }

  // The store of the members. Its functions throw Error(peer) as soon as the members have changed. It may outlive this
  // object, but not the job's store.
  std::unique_ptr<Store> store() const;

  // Whether the launcher has reported a further change. Waits for it at most `limit`. Throws Error(peer) if the whole
  // job has failed, because a rank has reported an error.
  bool has_changed(std::chrono::milliseconds limit) const;
  // False if nothing has changed within `limit`. Otherwise the members are those of the newest change, in the order of
  // their numbers at the start of the job.
  bool renew(std::chrono::milliseconds limit);

  // Starts a thread that waits for the death of a member, as long as the result lives. After a death it calls `end`
  // once. `end` must end what this rank waits for, and must not throw. Ranks that join or end do not count.
  std::jthread watch(std::function<void()> end) const;

  // Collective over the members, once after each renew(): what each of them gives, by rank. Throws as store(), and
  // Error(rendezvous) after `timeout`.
  std::vector<std::string> meet(const std::string& mine, std::chrono::milliseconds timeout) const {
    return store()->allgather("members", rank_, size(), mine, timeout);
  }

 private:
  Store& job_;
  const int number_;          // this rank as the job began
  std::vector<int> members_;  // their numbers as the job began, in the order of their ranks
  int rank_;
  int changes_ = 0;
};

}  // namespace ddprun::elastic
