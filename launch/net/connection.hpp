// The client's end of a connection to the store's server.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/unique_fd.hpp"
#include "launch/net/protocol.hpp"

namespace ddprun::launch {

// First both sides prove to each other that they know the secret, then they send frames. Single-threaded. A connection
// that has thrown cannot be used again.
class Connection {
 public:
  using Clock = std::chrono::steady_clock;

  // Connects, and exchanges the proofs. Tries again until the deadline, because the server may start later. Throws
  // Error(rendezvous): the name is unknown, the server cannot be reached, it is not a store, or it has another secret.
  Connection(const StoreAddress& address, Clock::time_point deadline);

  int fd() const { return socket_.get(); }  // for poll()

  // The next frame if there is one; never blocks. Throws Error(peer) if the connection is lost.
  bool poll(std::string& payload);
  // Blocks until the next frame comes. Throws Error(rendezvous) at the deadline, and as poll().
  std::string receive(Clock::time_point deadline);
  // Blocks until the kernel has the whole frame. Throws Error(peer) if the connection is lost, Error(rendezvous) if the
  // payload is longer than kLongestFrame.
  void send(const ByteWriter& payload);

 private:
  void connect(const std::string& address, int port, Clock::time_point deadline);
  void prove(const Secret& secret, Clock::time_point deadline);
  bool wait(short what, Clock::time_point deadline);
  void write(std::string_view bytes);
  bool read_some();
  [[noreturn]] void lose(const std::string& reason) const;

  const std::string name_;  // "the store at HOST:PORT"
  UniqueFd socket_;
  std::string received_;
};

// Of either end: if the host of the other side vanishes, the kernel ends the connection after three seconds. Programs
// that this process starts do not inherit it.
void set_options(int socket);

}  // namespace ddprun::launch
