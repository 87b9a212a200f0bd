// A client's connection to the store's server, and the store over such connections.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "base/store.hpp"
#include "base/unique_fd.hpp"
#include "launch/net/bytes.hpp"
#include "launch/net/secret.hpp"

namespace ddprun::launch {

// Single-threaded. A connection that has thrown cannot be used again.
class Connection {
 public:
  using Clock = std::chrono::steady_clock;

  // Connects; then client and server prove to each other that they know the secret. Tries again until the deadline,
  // because the server may start later. Throws Error(rendezvous): the name is unknown (after 1.5 s), the server cannot
  // be reached, it is not a store, or it has another secret.
  Connection(const StoreAddress& address, Clock::time_point deadline);

  // Blocks until the kernel has the whole frame. Throws Error(peer) if the connection is lost, Error(rendezvous) if the
  // payload is longer than kLongestFrame.
  void send(const ByteWriter& payload);
  // The next frame. Blocks; throws Error(rendezvous) at the deadline, Error(peer) if the connection is lost.
  std::string receive(Clock::time_point deadline);
  // The next frame if there is one; never blocks. Throws Error(peer) if the connection is lost.
  bool poll(std::string& payload);

  void close() { socket_.reset(); }
  int fd() const { return socket_.get(); }

 private:
  void connect(const StoreAddress& address, Clock::time_point deadline);
  void greet(const StoreAddress& address, Clock::time_point deadline);
  bool read_some();
  [[noreturn]] void lose(const std::string& reason) const;

  std::string name_;  // "the store at HOST:PORT"
  UniqueFd socket_;
  std::string received_;
};

// The store between hosts. Connects to the server within `timeout`; throws as Connection. The functions of the store
// throw Error(peer) if the connection is lost, from then on at once, or if another process of the job was lost while
// this one waited. allgather() costs one message to the server and one back.
std::unique_ptr<Store> net_store(StoreAddress address, std::chrono::milliseconds timeout);

// A store whose server runs in this process, at address.host, until the store is destroyed. If address.port is 0, a
// free port is chosen and written there. Throws as StoreServer.
std::unique_ptr<Store> hosted_store(StoreAddress& address, std::chrono::milliseconds timeout);

}  // namespace ddprun::launch
