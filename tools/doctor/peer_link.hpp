// One connection of the network test: the end that measures and the end that serves.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "tools/doctor/peers.hpp"

namespace ddprun::doctor {

// Serves peers on threads of its own until it is destroyed. A connection must begin with the token within 5 s; at most
// 64 connections are served at a time.
class PeerServer {
 public:
  // Listens on this address only; `port` 0: any free one. Throws Error(failure) with errno's text.
  PeerServer(const std::string& address, int port, std::string token);
  ~PeerServer();
  PeerServer(const PeerServer&) = delete;
  PeerServer& operator=(const PeerServer&) = delete;

  int port() const;

 private:
  class Service;
  std::unique_ptr<Service> service_;
};

// Measures the way to a server. Blocks for at most twice the limit and four times the duration. Never throws: errors
// are in the result, whose `from`, `to` and `interface` stay empty.
PeerPair measure(const PeerHost& to, const std::string& token, const PeersOptions& options);

// 128 random bits in hexadecimal.
std::string random_token();

}  // namespace ddprun::doctor
