// Simulates several hosts on this one, for shared memory only: IPC namespaces.
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "testing/ranks.hpp"

namespace ddprun::testing {

// hosts[rank]: the host of each rank. The first rank of each host creates it, the others join. Collective.
inline void move_to_host(Rank& rank, const std::vector<int>& hosts) {
  const auto first = static_cast<int>(std::find(hosts.begin(), hosts.end(), hosts[rank.rank()]) - hosts.begin());
  const bool is_first = first == rank.rank();
  if (is_first && unshare(CLONE_NEWIPC) != 0) throw std::runtime_error("unshare failed");
  std::vector<pid_t> pids(hosts.size());
  const pid_t mine = getpid();
  rank.allgather(&mine, sizeof mine, pids.data());
  if (!is_first) {
    const int space = open(("/proc/" + std::to_string(pids[first]) + "/ns/ipc").c_str(), O_RDONLY | O_CLOEXEC);
    if (space < 0 || setns(space, CLONE_NEWIPC) != 0) throw std::runtime_error("setns failed");
    close(space);
  }
  rank.meet();
}

// Prints the reason if not.
inline bool may_make_hosts() {
  const auto outcomes =
      run_ranks(1, As::processes, std::chrono::seconds(10), [](Rank& rank) { move_to_host(rank, {0}); });
  if (failures(outcomes).empty()) return true;
  std::puts("skipped: this user may not make IPC namespaces (unshare: CAP_SYS_ADMIN)");
  return false;
}

}  // namespace ddprun::testing
