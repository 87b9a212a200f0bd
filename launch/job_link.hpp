// This process's link to the other processes of its job: the launchers of its nodes, or the ranks that another launcher
// has started; each of these ranks is then a node.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ddprun/error.hpp"
#include "launch/first_cause.hpp"
#include "launch/net/secret.hpp"
#include "launch/stall_watch.hpp"

namespace ddprun::launch {

class ByteWriter;
class Connection;

// What each node sends to the others when it joins.
struct NodeInfo {
  std::string host;
  int nproc = 1;
  int program_port = 0;  // node 0: a port for MASTER_PORT of programs that are not ddprun; else 0
};

// In a job that survives deaths (Nodes::least): a rank does not train any more, or does so again.
struct MemberChange {
  RankEnd end;          // of a rank that trains: its number and process; of a node: its ranks
  bool trains = false;  // of a node: it is back, and starts its ranks
};

// The time from the first failure until the ranks are ended. Failures that follow from it arrive meanwhile, and one of
// them may turn out to be the first cause.
inline constexpr std::chrono::milliseconds kCollect{100};

// A connection to the store's server, which passes messages on to the other nodes: all of them, and this one, receive
// them in the same order. Single-threaded, for a poll loop. No function but the constructors throws.
class JobLink {
 public:
  using Clock = std::chrono::steady_clock;

  // Of a job that has no other node: never connected.
  explicit JobLink(NodeInfo only);
  // Joins the other nodes: blocks until all `nodes` are there, at most `timeout`. survives: a lost node is a change of
  // the members, unless it is node 0; if this node was lost, it comes back without waiting for others. Throws as
  // Connection, and Error(rendezvous) that names the missing nodes, or another node with the same node rank.
  JobLink(const StoreAddress& address, int node, int nodes, NodeInfo info, std::chrono::milliseconds timeout,
          bool survives = false);
  ~JobLink();  // ends the connection without a failure: the other nodes do not see a lost node

  const std::vector<NodeInfo>& nodes() const { return nodes_; }
  int first_rank() const { return first_rank(node_); }
  int world() const { return first_rank(nodes_.size()); }
  int starts() const { return starts_; }        // how often the nodes have joined before
  bool comes_back() const { return is_back_; }  // this node, into a job that runs
  int nodes_left() const;                       // those that are not lost, with this one

  // False once node 0 is lost.
  bool connected() const { return connection_ != nullptr; }
  int fd() const;  // for poll(); -1 if it is not connected
  // Ends the connection. The other nodes see a lost node. Requests to the store that wait then throw Error(peer), but
  // not in a job that survives.
  void disconnect();
  // Reads what has arrived, and sends a ping if one is due: call it at least every 100 ms. A node is lost if its
  // connection ends, or if it has been silent for Hub::kSilence.
  void turn();

  // When a rank of another node has failed, or a node was lost whose loss the job does not survive.
  std::optional<Clock::time_point> failing_since() const { return failing_since_; }
  bool failing() const { return failing_since_.has_value(); }
  std::optional<int> stop_signal() const { return stop_signal_; }  // of another node: as announce_stop()
  // Whether every other node has sent how its ranks ended, or is lost.
  bool have_ended() const;
  // Whether the store's server has passed on the message of announce_ends().
  bool has_announced_ends() const { return states_[node_].ended; }
  // How the ranks of the other nodes ended, with times on this host's clock.
  std::vector<RankEnd> ends() const;

  // Only node 0 gets the changes, its own too, and lost nodes. All nodes get its news: lines to print.
  void announce(const MemberChange& change);
  void announce_news(const std::string& line);
  std::vector<MemberChange> take_changes() { return std::exchange(changes_, {}); }
  std::vector<std::string> take_news() { return std::exchange(news_, {}); }

  // Takes the progress of this node's ranks, by local rank; empty if none trains. On node 0, every `interval`: returns
  // lines that name the ranks of all nodes for which others wait. Other nodes report it to node 0 once a second.
  std::vector<std::string> watch(const std::vector<Progress>& own, std::chrono::milliseconds interval);
  // On node 0: the last reported progress of the ranks, its own from the last watch(). Empty on other nodes.
  std::vector<RankProgress> progress() const;
  // The ranks that were named since the last call because they hang. Each node shows the stacks of its own.
  std::vector<int> take_stuck() { return std::exchange(stuck_, {}); }
  // Whether the rank was named because it hangs, and is still there.
  bool hangs(int rank, const Progress& progress) const { return stalls_.hangs(rank, progress); }

  void announce_failing();
  void announce_stop(int signal);  // 0: too few nodes are left
  void announce_stuck(const RankProgress& rank);
  void announce_ends(const std::vector<RankEnd>& ends);
  // The end of this node's first rank, if `error` is its cause.
  RankEnd own_end(const Error& error) const;
  // This launcher itself has failed: its error is the end of its first rank.
  void fail(const Error& error);

 private:
  struct Node {
    bool ended = false, lost = false;
    std::vector<RankEnd> ends;
    std::vector<Progress> progress;  // by local rank; empty: not known
  };

  int first_rank(std::size_t node) const;
  void send(const ByteWriter& message) noexcept;
  void publish(const ByteWriter& message);
  void publish_for_good(const ByteWriter& message);
  void receive();
  void read(std::size_t from, const std::string& text);
  RankEnd ranks_of(std::size_t node) const;
  void lose(std::size_t node, bool silent);
  void note_failure() { failing_since_ = failing_since_.value_or(Clock::now()); }

  const std::size_t node_ = 0;
  const bool survives_ = false;
  std::unique_ptr<Connection> connection_;  // null: there is none any more
  int starts_ = 0;
  bool is_back_ = false;
  std::vector<NodeInfo> nodes_;
  std::vector<Node> states_;          // by node rank; of this node only `ended`, and `progress` on node 0
  Clock::time_point last_message_{};  // the server's last message
  Clock::time_point last_poll_{};     // the last call of receive()
  Clock::time_point next_ping_{};
  Clock::time_point next_watch_{};
  std::optional<Clock::time_point> failing_since_;
  std::optional<int> stop_signal_;
  StallWatch stalls_;
  std::vector<int> stuck_;
  std::vector<MemberChange> changes_;
  std::vector<std::string> news_;
  std::vector<std::string> for_good_;  // messages that a node which comes back must get too
};

}  // namespace ddprun::launch
