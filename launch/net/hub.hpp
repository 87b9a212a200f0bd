// What the store's server knows: the keys, and which nodes have joined. Without sockets, so that it can be tested by
// itself.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ddprun::launch {

class ByteReader;

// A client that has proved that it knows the secret.
class HubClient {
 public:
  virtual ~HubClient() = default;
  // Queues a frame; never blocks. Clients that want the same keys get the same object.
  virtual void send(std::shared_ptr<const std::string> frame) = 0;
  virtual void close() = 0;
  virtual std::string address() const = 0;  // "10.0.0.2", for messages
};

// Single-threaded. Message formats: protocol.hpp.
class Hub {
 public:
  using Clock = std::chrono::steady_clock;
  using ClientPtr = std::shared_ptr<HubClient>;

  // survives: the job goes on without a lost node, which may come back (Nodes::least).
  explicit Hub(bool survives = false) : survives_(survives) {}

  // Handles one frame of a client. Throws std::exception if the frame has no meaning; the caller then closes the
  // connection.
  void handle(const ClientPtr& client, std::string_view frame, Clock::time_point now);
  // The connection has ended. A node that had joined is then lost.
  void leave(const ClientPtr& client) { lose(client, false); }
  // Answers requests whose deadline has passed; drops nodes that have been silent for kSilence. Call it every 50 ms.
  void sweep(Clock::time_point now);

  // Nodes send a ping four times a second. A node may miss eight pings.
  static constexpr std::chrono::milliseconds kSilence{2250};
  // If two sweeps are farther apart, this process was paused, perhaps with its machine. That time does not count as
  // silence of the nodes.
  static constexpr std::chrono::milliseconds kPause{500};

 private:
  struct Value {
    std::string text;
    std::string address;  // of the process that has set it
  };
  // The keys of so many ranks, as rank_key() names them; without a number, the key `name` itself.
  struct Wanted {
    std::string name;
    std::optional<uint64_t> ranks = 0;
    auto operator<=>(const Wanted&) const = default;
    uint64_t count() const { return ranks.value_or(1); }
    std::string key(uint64_t rank) const;
  };
  struct Waiter {
    ClientPtr client;
    Clock::time_point deadline;
  };
  struct Waiting {
    uint64_t there = 0;  // so many of the keys, from the first one, are set
    std::vector<Waiter> waiters;
  };
  struct Node {
    ClientPtr client;
    std::string info;        // for the other nodes
    Clock::time_point time;  // of a joined node: of its last message; of a joining node: its deadline
  };

  void exchange(const Waiter& waiter, ByteReader& reader, Clock::time_point now);
  void answer();
  void answer_late(Clock::time_point now);
  void join(const ClientPtr& client, uint64_t node, uint64_t nodes, std::string info, Clock::time_point deadline,
            Clock::time_point now);
  bool is_running(uint64_t node) const { return !broken_ && joined_.count(node) > 0; }
  void lose(const ClientPtr& client, bool silent);
  static void refuse_second(const ClientPtr& client, uint64_t node, const Node& first);
  void start(Clock::time_point now);
  void take_back(uint64_t node, Node by, Clock::time_point now);
  std::shared_ptr<const std::string> started(bool runs) const;
  void pass_on(const ClientPtr& client, const std::string& text, bool only_node0);
  std::optional<uint64_t> node_of(const ClientPtr& client) const;

  const bool survives_;
  std::map<std::string, Value> values_;
  std::map<Wanted, Waiting> waiting_;  // all ranks of an allgather want the same

  uint64_t nodes_ = 0;   // that must join
  uint64_t starts_ = 0;  // how often all nodes have joined
  Clock::time_point swept_{};
  bool broken_ = true;                // no start yet, or a node has left since
  std::map<uint64_t, Node> joining_;  // by node rank
  std::map<uint64_t, Node> joined_;
  std::vector<std::string> infos_;  // of the nodes, since all have joined
};

}  // namespace ddprun::launch
