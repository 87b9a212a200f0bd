// The full mesh: one TCP connection per pair of ranks, made with Gloo's tcp device and the host's allgather. After that
// the connections are in Gloo's synchronous mode: the calling thread itself reads and writes. In the other mode, a
// thread of Gloo reads, and waking the caller takes longer than most messages.
#pragma once

#include <gloo/transport/context.h>
#include <gloo/transport/device.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "connection_watchdog.hpp"
#include "ddprun/plugin/comm_plugin.hpp"
#include "host/liveness.hpp"
#include "shm/wait.hpp"

namespace ddprun::gloo_backend {

// The connection to a peer ended, or made no progress until the deadline: Mesh::is_late() says so.
class ConnectionLost : public std::runtime_error {
 public:
  ConnectionLost(int peer, const std::string& why) : std::runtime_error(why), peer_(peer) {}
  int peer() const noexcept { return peer_; }

 private:
  int peer_;
};

// Not movable. One thread at a time, except where a comment says "any thread".
class Mesh {
 public:
  // Collective. Blocks until all connections are made, at most host.deadline(), or until the host's abort flag is set.
  // Listens on listening_address() (address.hpp). Throws CommError.
  // processes: of all ranks.
  Mesh(const Host& host, const std::vector<host::Process>& processes);
  ~Mesh() { watchdog_.stop(); }
  Mesh(const Mesh&) = delete;
  Mesh& operator=(const Mesh&) = delete;

  // Begins a collective, whose waits end at the deadline. `name` must live as long as the collective.
  void begin(const char* name) noexcept;

  // The bytes of the largest message, the same on all ranks: a multiple of 4 KiB, at most 512 KiB. A connection holds
  // two such messages that the peer has not read, and send() returns. It may wait for the peer if there are more.
  uint64_t chunk() const noexcept { return chunk_; }
  // 1 to chunk() bytes. receive() takes the next message of that rank; the number of bytes must be that of the message.
  // Both throw ConnectionLost, what Gloo throws, and receive() also CommError (timeout or aborted).
  void send(int to, const void* data, uint64_t bytes);
  void receive(int from, void* data, uint64_t bytes);

  // After a failure: whether the collective's time is up, and the ranks on hosts that are cut off.
  bool is_late() const noexcept { return watchdog_.is_late(); }
  std::vector<int> silent_ranks() const { return watchdog_.silent_ranks(); }
  // Ends all connections. Peers that wait for this rank notice at once.
  void close() noexcept { watchdog_.cut(); }
  // Ends all waits, now and later. Any thread.
  void abort() noexcept;

 private:
  // Makes the connection to each other rank. Gloo takes the first connection that reaches a port, even another
  // program's. So the ranks check all connections, and if one is wrong, all connect again, with new ports.
  std::vector<Descriptor> connect(const Host& host, const std::vector<host::Process>& processes);
  // `problem`: set if a connection is missing, else unchanged.
  std::vector<Descriptor> try_to_connect(const Host& host, const std::vector<host::Process>& processes,
                                         std::string& problem);
  void connect_pairs(const Host& host, const std::vector<std::vector<char>>& addresses, std::string& problem);
  template <class Body>
  void with_pair(int rank, Body&& body);

  ConnectionWatchdog watchdog_;
  shm::Waiter waiter_;
  uint64_t chunk_ = 0;
  std::vector<uint64_t> largest_sent_;  // bytes of a message, by rank
  std::string address_;                 // on which this rank listens
  std::shared_ptr<gloo::transport::Device> device_;
  std::shared_ptr<gloo::transport::Context> pairs_;
};

}  // namespace ddprun::gloo_backend
