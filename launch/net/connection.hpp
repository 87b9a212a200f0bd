// A connection between the store's server and one of its clients.
#pragma once

#include <utility>  // Boost.Asio 1.74 needs it and does not include it

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "launch/net/protocol.hpp"

namespace ddprun::launch {

// One end of it. First both sides prove to each other that they know the secret, then they send frames. If the host of
// the other side vanishes, the kernel ends the connection after three seconds. Programs that this process starts do not
// inherit it. Single-threaded. A connection that has thrown cannot be used again.
class Connection {
 public:
  using Clock = std::chrono::steady_clock;
  using Socket = boost::asio::ip::tcp::socket;

  // The client's end, after the proof. Tries again until the deadline, because the server may start later. Throws
  // Error(rendezvous): the name is unknown, the server cannot be reached, it is not a store, or it has
  // another secret.
  Connection(const StoreAddress& address, Clock::time_point deadline);
  // The server's end, of a connection that was accepted.
  Connection(Socket socket, const Secret& secret);

  // The next frame if there is one; never blocks. Throws Error(peer) if the connection is lost, Error(rendezvous) if
  // the other side does not know the secret, std::out_of_range if a client's frame is longer than kLongestFrame.
  bool poll(std::string& payload);
  bool is_proved() const { return !greeting_; }  // the other side knows the secret

  // Of a client. send() blocks until the kernel has the whole frame; it throws Error(peer) if the connection is lost,
  // Error(rendezvous) if the payload is longer than kLongestFrame. receive() blocks until the next frame comes; throws
  // Error(rendezvous) at the deadline, and as poll().
  void send(const ByteWriter& payload);
  std::string receive(Clock::time_point deadline);

  // Of the server. write_some() sends as much of the queued frames as the kernel takes now, and returns whether that
  // was all. Throws Error(peer) if the connection is lost.
  void queue(std::shared_ptr<const std::string> frame) { queue_.push_back(std::move(frame)); }
  bool write_some();
  bool is_idle() const;  // all that arrived is read, and all that was queued is sent

  Socket& socket() { return socket_; }
  const Socket& socket() const { return socket_; }

 private:
  void connect(const std::string& address, int port, Clock::time_point deadline);
  void prove(Clock::time_point deadline);
  bool wait(short what, Clock::time_point deadline);
  void set_options();
  bool greet();
  bool read_some();
  [[noreturn]] void lose(const boost::system::error_code& error) const;

  std::unique_ptr<boost::asio::io_context> context_;  // of a client's socket; null: that of the server
  Socket socket_;
  const Secret secret_;
  std::string name_;                  // "the store at HOST:PORT"
  std::optional<Greeting> greeting_;  // until it is complete
  std::string received_;
  std::deque<std::shared_ptr<const std::string>> queue_;
  std::size_t written_ = 0;  // bytes of queue_.front()
};

// For the sockets of the server, too: asio does not do it, and a process that outlives this one would keep the port.
void close_in_children(int socket);

}  // namespace ddprun::launch
