// The allreduce "hierarchical": within each host in shared memory (group.hpp), and between the hosts as the plugin
// does it, by the first rank of each host, its leader. Large vectors are cut into parts: while the leaders reduce one
// part between the hosts, in another thread, the ranks of a host reduce the next part and spread the one before.
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

// True if there are several hosts, and one of them has several ranks. places: of all ranks.
bool has_two_levels(const std::vector<host::Place>& places);

// One thread at a time.
class Hierarchy {
 public:
  // Collective, during create only, as Group. places: of all ranks.
  Hierarchy(const Host& host, const std::vector<host::Place>& places);

  // Null if no allreduce can be hierarchical. is_named: the config names it. is_auto: "auto" may choose it, where hosts
  // have two levels or comm.options.tuning has a table. Collective, if it is not null on one rank.
  static std::unique_ptr<Hierarchy> make(const Host& host, const std::vector<host::Place>& places, bool is_named,
                                         bool is_auto);

  // As in Group. Call allreduce() only if this is true.
  bool is_usable() const noexcept { return node_.is_usable(); }
  // Throws CommError (unsupported) if it is not. others: the plugin's other algorithms, such as "\"ring\" or \"tree\"".
  void require_usable(const std::string& others) const;

  // The first rank of each host, ascending.
  const std::vector<int>& leaders() const noexcept { return leaders_; }
  // The number of this rank's host: the place of its leader in leaders().
  int host() const noexcept { return host_; }
  bool leads() const noexcept { return leaders_[static_cast<std::size_t>(host_)] == rank_; }
  // The ranks of this host. After a failure of allreduce, call its leave().
  Group& node() noexcept { return node_; }

  // What the plugin does between the hosts.
  struct Between {
    // Reduces part.recv in place over the leaders; Op::avg divides by the number of all ranks. Called on each rank for
    // each part, in order, one at a time. On ranks that do not lead it must return at once. It may be called in another
    // thread; the calling thread does not use the plugin's connections meanwhile.
    std::function<void(const Collective& part)> allreduce;
    // Ends allreduce() early. Any thread.
    std::function<void()> abort;
  };

  // Collective. Throws what Group::allreduce, Group::spread and between.allreduce throw, and CommError (internal) if no
  // thread can be started. has_failed_between() is true then, unless the failure was within the host. When it returns
  // or throws, no call of `between` is running.
  void allreduce(const Collective& call, const Between& between);
  bool has_failed_between() const noexcept { return has_failed_between_; }

 private:
  void reduce_here(Collective part);

  const int rank_;
  const std::vector<int> leaders_;
  Group node_;
  int host_ = 0;
  bool has_failed_between_ = false;
};

}  // namespace ddprun::shm
