// The other nodes of a job, as the supervisor of this node sees them; under another launcher, each rank is a node.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ddprun/error.hpp"
#include "launch/first_cause.hpp"
#include "launch/net/connection.hpp"
#include "launch/stall_watch.hpp"

namespace ddprun::launch {

// What each node sends to the others when it joins.
struct NodeInfo {
  std::string host;
  int nproc = 1;
  int program_port = 0;  // node 0: a port for MASTER_PORT of programs that are not ddprun; else 0
};

// A connection to the store's server, which passes messages on to the other nodes: all of them, and this one, receive
// them in the same order. Single-threaded, for a poll loop. No function but the constructor throws.
class Peers {
 public:
  using Clock = std::chrono::steady_clock;

  // Joins the other nodes: blocks until all `nodes` are there, at most `timeout`. Throws as Connection, and
  // Error(rendezvous) that names the missing nodes, another node with the same node rank, or one of another version.
  Peers(const StoreAddress& address, int node, int nodes, const NodeInfo& info, std::chrono::milliseconds timeout);
  ~Peers();  // ends the connection without a failure: the other nodes do not see a lost node
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  const std::vector<NodeInfo>& nodes() const { return nodes_; }
  int first_rank() const { return first_rank(node_); }
  int world() const { return first_rank(nodes_.size()); }
  int starts() const { return starts_; }  // how often the nodes have joined before

  int fd() const { return connection_.fd(); }
  // False once node 0 is lost.
  bool connected() const { return open_; }
  // Ends the connection. The other nodes see a lost node, and their waiting requests to the store throw Error(peer).
  void disconnect();
  // Reads what has arrived, and sends a ping if one is due. Returns when to call it next. A node is lost if its
  // connection ends, or if it has been silent for Hub::kSilence.
  Clock::time_point turn();

  bool failing() const { return failing_; }  // a rank of another node has failed, or a node is lost
  std::optional<int> stop_signal() const { return stop_signal_; }  // the signal that asked another node to stop
  // Whether every other node has sent how its ranks ended, or is lost.
  bool have_ended() const;
  // Whether the store's server has passed on the message of announce_ends().
  bool has_announced_ends() const { return states_[node_].ended; }
  // How the ranks of the other nodes ended, with times on this host's clock.
  std::vector<RankEnd> ends() const;

  // Reports the progress of this node's ranks to node 0, in the order of their local ranks.
  void report_progress(const std::vector<Progress>& ranks);
  // On node 0: the last reported progress of the other nodes' ranks. Empty on other nodes.
  std::vector<RankProgress> progress() const;

  // Reports to all nodes that the others wait for this rank, which hangs there. Its own node shows its stack.
  void announce_stuck(const RankProgress& rank);
  // The ranks that another node has announced since the last call, without their host.
  std::vector<RankProgress> take_stuck() { return std::exchange(stuck_, {}); }

  void announce_failing();
  void announce_stop(int signal);
  void announce_ends(const std::vector<RankEnd>& ends);
  // The end of this node's first rank, if `error` is its cause.
  RankEnd own_end(const Error& error) const;
  // This launcher itself has failed: its error is the end of its first rank.
  void fail(const Error& error);

 private:
  struct Node {
    bool ended = false;
    std::vector<RankEnd> ends;
    std::vector<Progress> progress;  // by local rank; empty: not known
  };

  int first_rank(std::size_t node) const;
  void send(const ByteWriter& message) noexcept;
  void publish(const ByteWriter& message);
  void receive();
  void read(std::size_t from, const std::string& text);
  void lose(std::size_t node, bool silent);

  const std::size_t node_;
  Connection connection_;
  bool open_ = true;
  int starts_ = 0;
  std::vector<NodeInfo> nodes_;
  std::vector<Node> states_;          // by node rank; of this node only `ended` is used
  Clock::time_point last_message_{};  // the server's last message
  Clock::time_point last_poll_{};     // the last call of receive()
  Clock::time_point next_ping_{};
  bool failing_ = false;
  std::optional<int> stop_signal_;
  std::vector<RankProgress> stuck_;
};

}  // namespace ddprun::launch
