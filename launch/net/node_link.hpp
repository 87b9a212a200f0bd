// The links between the launchers of a job's nodes: who is there, what happened, and who is gone.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launch/net/connection.hpp"

namespace ddprun::launch {

// What a node hears about another one.
struct NodeEvent {
  int node = 0;
  bool lost = false;    // its connection has ended, or it has been silent for Hub::kSilence
  bool silent = false;  // lost by silence
  std::string text;     // not lost: what it published
};

// Single-threaded, for a poll loop. keep_alive() sends a ping four times a second.
class NodeLink {
 public:
  using Clock = std::chrono::steady_clock;

  // Joins the other nodes: blocks until all `nodes` are there, at most `timeout`. All of them get `info`. Throws as
  // Connection, and Error(rendezvous) that names the missing nodes, or another node with the same node rank.
  NodeLink(const StoreAddress& address, int node, int nodes, const std::string& info,
           std::chrono::milliseconds timeout);

  // What each node passed as `info`, by node rank.
  const std::vector<std::string>& infos() const { return infos_; }
  // The number of restarts so far.
  int starts() const { return starts_; }

  // Sends the text to all nodes, also to this one. All nodes receive all texts in the same order. Does not throw:
  // events() reports a lost server.
  void publish(const std::string& text);

  // Sends the text to node 0 only. Does not throw.
  void report(const std::string& text);

  int fd() const { return connection_.fd(); }
  // False once the server is lost, and after leave() and disconnect().
  bool connected() const { return open_; }
  // What has arrived; never blocks. If the server is gone or silent, the last event is the loss of node 0.
  std::vector<NodeEvent> events();
  // Sends a ping if one is due. Returns when to call it, and events(), next.
  Clock::time_point keep_alive();

  // Ends the link without a failure: the other nodes do not see a lost node.
  void leave();
  // Ends the connection. The other nodes see a lost node, and their waiting requests to the store throw Error(peer).
  void disconnect();

 private:
  void say_silence();

  Connection connection_;
  std::vector<std::string> infos_;
  int starts_ = 0;
  bool open_ = true;
  Clock::time_point heard_{};   // the server's last message
  Clock::time_point looked_{};  // the last call of events()
  Clock::time_point next_ping_{};
};

}  // namespace ddprun::launch
