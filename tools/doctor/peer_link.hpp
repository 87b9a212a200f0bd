// One connection of the network test: the end that measures and the end that serves.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "tools/doctor/peers.hpp"

namespace ddprun::doctor {

// Serves peers on separate threads until it is destroyed. A client must send the token within 5 s; at most 64
// connections are served at a time.
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

// Measures the connection to a server. Blocks until its time limits (options.connect_limit, options.duration) have
// passed. Never throws: errors are in the result, whose `from`, `to` and `interface` stay empty.
PeerPair measure(const PeerHost& to, const std::string& token, const PeersOptions& options);

// 128 random bits in hexadecimal.
std::string random_token();

}  // namespace ddprun::doctor
