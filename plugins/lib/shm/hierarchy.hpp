// The algorithm "hierarchical". First the ranks of each host reduce in shared memory (group.hpp). Then the first rank
// of each host (the leader) reduces with the other leaders, by a function of the plugin. Then each host spreads the
// result. A vector above 4 MiB is cut into parts of 4 MiB: while the leaders reduce one part in another thread, the
// ranks of a host reduce the next part and spread the part before.
//
// The three phases are those of Goyal et al., "Accurate, Large Minibatch SGD: Training ImageNet in 1 Hour" (2017), and
// the overlap of parts is that of Luo et al., "HAN: a Hierarchical AutotuNed Collective Communication Framework",
// IEEE CLUSTER 2020.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ddprun/plugin/comm_plugin.hpp"
#include "host/liveness.hpp"
#include "shm/group.hpp"

namespace ddprun::shm {

// True if there are several hosts, and one of them has several ranks. processes: of all ranks.
bool has_two_levels(const std::vector<host::Process>& processes);

// One thread at a time.
class Hierarchy {
 public:
  // Collective, during create only, as Group, and throws as Group. processes: of all ranks.
  Hierarchy(const Host& host, const std::vector<host::Process>& processes);

  // Returns null if the config does not name "hierarchical" (is_named) and "auto" cannot choose it, or if there is one
  // rank. is_auto: the config has "auto", which may choose it if has_two_levels() or if comm.options.tuning has a
  // table. If one rank gets an object, all ranks must call it. Throws as the constructor.
  static std::unique_ptr<Hierarchy> make(const Host& host, const std::vector<host::Process>& processes, bool is_named,
                                         bool is_auto);

  // As in Group. Call allreduce() only if this is true.
  bool is_usable() const noexcept { return node_.is_usable(); }
  // Throws CommError (unsupported) if is_usable() is false. others: the plugin's other algorithms for the text, such as
  // "\"ring\" or \"tree\"".
  void require_usable(const std::string& others) const;

  // The first rank of each host, ascending.
  const std::vector<int>& leaders() const noexcept { return leaders_; }
  // The number of this rank's host: the index of its leader in leaders().
  int host() const noexcept { return host_; }
  bool leads() const noexcept { return leaders_[static_cast<std::size_t>(host_)] == rank_; }
  // The ranks of this host. After a failure of allreduce, call its leave().
  Group& node() noexcept { return node_; }

  // What the plugin does between the hosts.
  struct Between {
    // Reduces part.recv in place over the leaders; part.send is part.recv. Op::avg divides by the number of all ranks.
    // Called on each rank for each part, in order, one at a time, with part.count elements: 4 MiB, the last part less.
    // Never called if there is one host, or if the count of the call is 0. On ranks that do not lead, it must return at
    // once. It may be called in another thread; the calling thread does not use the plugin's connections meanwhile.
    std::function<void(const Collective& part)> allreduce;
    // Ends allreduce() early. Called on leaders after a failure, in the thread that called Hierarchy::allreduce(),
    // while `allreduce` may run in another thread. Must not throw.
    std::function<void()> abort;
  };

  // Collective; requires is_usable(). call.send and call.recv hold call.count elements each, in the host's
  // memory; they may be the same memory. The caller owns them. call.op and call.dtype: what Group::allreduce takes.
  // Throws what Group::run and between.allreduce throw, and CommError (internal) if no
  // thread can be started. After a throw, has_failed_between() is true if the failure was between the hosts, or if no
  // thread could be started. When it returns or throws, no call of `between` is running.
  void allreduce(const Collective& call, const Between& between);
  bool has_failed_between() const noexcept { return has_failed_between_; }

 private:
  const int rank_;
  const std::vector<int> leaders_;
  Group node_;
  int host_ = 0;
  bool has_failed_between_ = false;
};

}  // namespace ddprun::shm
