// A client's connection to the store's server.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

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

}  // namespace ddprun::launch
