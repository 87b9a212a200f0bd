// Notices that a host is cut off: the host or the network to it is down, and no packet reports that. It asks the kernel
// when the peers' kernels last answered on this process's TCP connections. A busy process is not silent, because the
// kernel of its host answers. A network may lose packets, as long as some arrive.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "ddprun/plugin/comm_plugin.hpp"
#include "host/liveness.hpp"

namespace ddprun::host {

// Makes the kernel send a keep-alive probe every second on an idle connection, unless keep-alive is on already. The
// kernel itself ends the connection only after ten probes without an answer.
void enable_keepalive(int socket) noexcept;

// One thread at a time, except where a comment says "any thread".
class Silence {
 public:
  // Collective, with the host's allgather: the addresses of all hosts. Throws CommError.
  Silence(const Host& host, const std::vector<Process>& processes);

  // Finds the TCP connections of this process to the other hosts, and calls enable_keepalive() for each. Call it when
  // they are made.
  void find_connections();

  // The ranks, ascending, on hosts from which nothing has come on any connection for 2.5 s, although the kernel has
  // sent at least two probes. So a pause of this machine does not count as silence. Looks at the connections at most
  // ten times a second. A host that was silent once stays in the list.
  const std::vector<int>& ranks();

  // The same after 2 s and one probe, which is enough after a peer was lost: another rank may have noticed the silence
  // first. Any thread, after find_connections().
  std::vector<int> ranks_after_loss() const { return silent_for(std::chrono::seconds(2), 1); }

  // "lost ranks 2, 3: their hosts do not answer; a host or the network to it is down", for these ranks.
  static std::string text(const std::vector<int>& ranks);

 private:
  using Clock = std::chrono::steady_clock;
  struct Connection {
    int socket;           // belongs to the library, which may close it
    std::string address;  // of the peer
    int leader;           // the first rank of the peer's host
  };
  int leader_at(const std::string& address) const;  // -1: no other host has this address
  std::vector<int> silent_for(std::chrono::milliseconds time, int probes) const;

  std::vector<int> leader_of_;                       // by rank: the first rank of its host
  std::vector<std::vector<std::string>> addresses_;  // by rank: those that no other host has
  std::vector<Connection> connections_;
  std::vector<int> silent_;
  Clock::time_point next_poll_{};
};

}  // namespace ddprun::host
