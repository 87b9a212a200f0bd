// The ranks of one host, and their collectives through memory that all of them map: collectives.hpp has
// the protocol, segment.hpp the memory.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ddprun/plugin/comm_plugin.hpp"
#include "host/liveness.hpp"
#include "shm/allocation.hpp"
#include "shm/collectives.hpp"
#include "shm/segment.hpp"
#include "shm/wait.hpp"

namespace ddprun::shm {

class Group {
 public:
  // Collective over all ranks of `host`, through host.allgather: during create only. processes: of all ranks. Throws
  // CommError if the allgather fails. If memory cannot be shared, the group is unusable, which is no error.
  Group(const Host& host, const std::vector<host::Process>& processes);
  // Reports to the peers that this rank has gone; waits for nobody.
  ~Group() { leave(rank_); }

  // The ranks of this host, ascending, including this one.
  const std::vector<int>& ranks() const noexcept { return ranks_; }
  // True, on all ranks alike, if on every host all ranks map one another's memory.
  bool is_usable() const noexcept { return why_not_.empty(); }
  // Why the group is unusable: one line.
  const std::string& why_not() const noexcept { return why_not_; }

  // Runs body(collectives, waiter), a collective of the ranks of this host, which errors call `name`. Needs
  // is_usable(). Throws what Waiter::until throws, after which only abort, free and the destructor may be called, and
  // what Collectives throws.
  template <class Body>
  void run(const char* name, const Body& body) {
    guarded(name, [&] { body(*collectives_, *waiter_); });
  }

  // As in the C table: page-aligned. All ranks of the host map it if is_usable(), else only this rank. Throws
  // CommStatus::no_memory, on all ranks of the host alike.
  void* alloc(uint64_t bytes);
  void free(void* memory) noexcept { allocations_->free(memory); }

  // The rank that the last failure is about, or -1.
  int culprit() const noexcept { return waiter_->culprit(); }
  // Ends every wait of this rank, now and later, and reports it to the peers. Any thread, any number of times.
  void abort() noexcept;
  // Reports to the peers that this rank leaves because of rank `cause`; the first cause stays. Memory from alloc stays
  // until it is freed. Any thread.
  void leave(int cause) noexcept;

 private:
  // Maps the peers' areas. Throws CommError.
  void connect(const std::vector<SegmentKey>& areas);
  // Runs body(). Leaves after a failure, unless all ranks have it and can continue.
  template <class Body>
  void guarded(const char* name, const Body& body) {
    waiter_->begin(name);
    try {
      body();
    } catch (const CommError& failure) {
      if (failure.status() == CommStatus::no_memory || failure.status() == CommStatus::unsupported) throw;
      leave(waiter_->culprit() >= 0 ? waiter_->culprit() : rank_);
      throw;
    }
  }
  // A rank that will not come any more, or -1: a peer blames it, it has died, or it has left. In an exchange, all but
  // the rank that is waited for may leave, or end.
  int missing() const;

  int rank_;
  const host::Liveness liveness_;
  std::vector<int> ranks_;
  std::optional<Waiter> waiter_;
  std::size_t me_ = 0;  // this rank's index in ranks_
  std::string why_not_;
  std::unique_ptr<Segment> segment_;  // this rank's area
  std::vector<Mapping> mappings_;     // the peers' areas, by index; empty for this rank
  std::vector<Area*> areas_;          // all, if usable
  std::unique_ptr<Allocations> allocations_;
  std::unique_ptr<Collectives> collectives_;
};

}  // namespace ddprun::shm
