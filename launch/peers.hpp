// The other nodes of a job, as the supervisor of this node sees them.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ddprun/error.hpp"
#include "launch/first_cause.hpp"
#include "launch/net/node_link.hpp"
#include "launch/stall_watch.hpp"

namespace ddprun::launch {

// What each node sends to the others when they meet.
struct NodeInfo {
  std::string host;
  int nproc = 1;
  int program_port = 0;  // node 0: a port for MASTER_PORT of programs that are not ddprun; else 0

  std::string encode() const;
  static NodeInfo decode(const std::string& text);  // throws std::out_of_range, also for an impossible nproc
};

// Single-threaded, for the supervisor's poll loop.
class Peers {
 public:
  using Clock = std::chrono::steady_clock;

  // Joins the other nodes. Throws as NodeLink, and Error(rendezvous) if a node is of another version.
  Peers(const StoreAddress& address, int node, int nodes, const NodeInfo& info, std::chrono::milliseconds timeout);
  ~Peers();  // leaves in order

  const std::vector<NodeInfo>& nodes() const { return nodes_; }
  int first_rank() const { return first_rank(node_); }
  int world() const;
  int starts() const { return link_.starts(); }

  int fd() const { return link_.fd(); }
  // False once node 0 is lost.
  bool connected() const { return link_.connected(); }
  // Ends the connection, as NodeLink::disconnect().
  void disconnect() { link_.disconnect(); }
  // Reads what has arrived, and sends a ping if one is due. Returns when to call it next.
  Clock::time_point turn();

  bool failing() const { return failing_; }  // a rank of another node has failed, or a node is lost
  std::optional<int> stop_signal() const { return stop_signal_; }  // the signal that asked another node to stop
  // Whether every other node has sent how its ranks ended, or is lost.
  bool have_ended() const;
  // Whether the store's server has passed on the message of announce_ends().
  bool has_announced_ends() const { return states_[static_cast<std::size_t>(node_)].ended; }
  // How the ranks of the other nodes ended, with times on this host's clock.
  std::vector<RankEnd> ends() const;

  // Reports the progress of this node's ranks to node 0, in the order of their local ranks.
  void report_progress(const std::vector<Progress>& ranks);
  // On node 0: the last reported progress of the other nodes' ranks. Empty on other nodes.
  std::vector<RankPlace> places() const;

  // Tells all nodes that the others wait for this rank, which hangs in this place. Its own node shows its stack.
  void announce_stuck(const RankPlace& place);
  // The places that another node has announced since the last call. They have no host.
  std::vector<RankPlace> take_stuck() { return std::exchange(stuck_, {}); }

  void announce_failing();
  void announce_stop(int signal);
  void announce_ends(const std::vector<RankEnd>& ends);
  // This launcher itself has failed: its error is the end of its first rank.
  void fail(const Error& error);

 private:
  struct Node {
    bool ended = false;
    std::vector<RankEnd> ends;
    std::vector<Progress> progress;  // by local rank; empty: not known
  };

  int first_rank(int node) const;
  void read(const NodeEvent& event);
  void lose(int node, bool silent);

  const int node_;
  NodeLink link_;
  std::vector<NodeInfo> nodes_;
  std::vector<Node> states_;  // by node rank; of this node only `ended` is used
  bool failing_ = false;
  std::optional<int> stop_signal_;
  std::vector<RankPlace> stuck_;
};

}  // namespace ddprun::launch
