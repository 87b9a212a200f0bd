// Stands between clients and a server on loopback. Each direction can be stopped while the connections stay open, as on
// a network that is half open.
#pragma once

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <list>
#include <thread>
#include <utility>
#include <vector>

#include "base/unique_fd.hpp"

namespace ddprun::launch::testing {

class Relay {
 public:
  explicit Relay(int server) : server_(server) {
    sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    REQUIRE(::bind(listener_.get(), generic, size) == 0);
    REQUIRE(::listen(listener_.get(), 16) == 0);
    REQUIRE(::getsockname(listener_.get(), generic, &size) == 0);
    port = ntohs(address.sin_port);
    thread_ = std::thread([this] { run(); });
  }
  ~Relay() {
    quit_ = true;
    thread_.join();
  }

  int port = 0;
  // What arrives while it is stopped is lost, and so is the end of a connection.
  std::atomic<bool> stop_to_server{false}, stop_to_client{false};

 private:
  struct Pair {
    UniqueFd client, server;
  };

  static sockaddr_in loopback(int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }

  static UniqueFd new_socket() { return UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)); }

  void run() {
    while (!quit_) {
      std::vector<pollfd> entries{{listener_.get(), POLLIN, 0}};
      for (const Pair& pair : pairs_) {
        entries.push_back({pair.client.get(), POLLIN, 0});
        entries.push_back({pair.server.get(), POLLIN, 0});
      }
      ::poll(entries.data(), entries.size(), 10);
      auto entry = entries.begin() + 1;
      for (Pair& pair : pairs_) {
        if ((entry++)->revents != 0) pass(pair.client, pair.server, stop_to_server);
        if ((entry++)->revents != 0) pass(pair.server, pair.client, stop_to_client);
      }
      if (entries.front().revents != 0) accept();
    }
  }

  void accept() {
    Pair pair{UniqueFd(::accept(listener_.get(), nullptr, nullptr)), new_socket()};
    const sockaddr_in address = loopback(server_);
    if (::connect(pair.server.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return;
    pairs_.push_back(std::move(pair));
  }

  static void pass(UniqueFd& from, UniqueFd& to, bool stopped) {
    std::array<char, 65536> buffer;
    const ssize_t got = ::recv(from.get(), buffer.data(), buffer.size(), 0);
    if (got > 0 && !stopped) ::send(to.get(), buffer.data(), static_cast<std::size_t>(got), MSG_NOSIGNAL);
    if (got > 0) return;
    from.reset();
    if (!stopped) to.reset();
  }

  const int server_;
  UniqueFd listener_ = new_socket();
  std::list<Pair> pairs_;
  std::atomic<bool> quit_{false};
  std::thread thread_;
};

}  // namespace ddprun::launch::testing
