// Notices that a host is cut off: it, or the network to it, is down, and no packet says so. It asks the kernel when the
// peers' kernels have last answered on this process's TCP connections. A busy process does not matter, because the
// kernel of its host answers. Neither does a network that loses packets, as long as some arrive.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "ddprun/plugin/comm_plugin.hpp"
#include "host/liveness.hpp"

namespace ddprun::host {

// Makes the kernel ask an idle peer every second. It ends the connection itself only after ten questions.
void ask_every_second(int socket) noexcept;

// One thread at a time, if nothing else is said.
class Silence {
 public:
  // Collective, with the host's allgather: the addresses of all hosts. Throws CommError.
  Silence(const Host& host, const std::vector<Place>& places);

  // Finds the TCP connections of this process to the other hosts. Call it when they are made. Each needs
  // ask_every_second(), or the equal settings of a library.
  void find_connections();

  // The ranks on hosts from which nothing has come for 3.5 s on any connection, ascending, although the kernel has
  // asked at least twice. So a pause of this machine alone is no silence. Looks four times a second; between that, it
  // costs nothing. Once silent, a host stays so.
  const std::vector<int>& ranks();

  // The same for 2 s and one question, which is enough after a peer was lost: another rank may have noticed the silence
  // first. Any thread after find_connections().
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
  int leader_at(const std::string& address) const;
  std::vector<int> silent_for(std::chrono::milliseconds time, int questions) const;

  std::vector<int> leader_of_;                       // by rank: the first rank of its host
  std::vector<std::vector<std::string>> addresses_;  // by rank: those that no other host has
  std::vector<Connection> connections_;
  std::vector<int> silent_;
  Clock::time_point next_look_{};
};

}  // namespace ddprun::host
