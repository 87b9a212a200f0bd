// One connection of the network test: the end that measures and the end that serves. The two ends of a connection agree
// on a ticket before, which only they know.
#pragma once

#include <memory>
#include <string>

#include "tools/doctor/peers.hpp"

namespace ddprun::doctor {

class PeerListener {
 public:
  // Listens on this address only; `port` 0: any free one. Throws Error(failure) with errno's text.
  PeerListener(const std::string& address, int port);
  ~PeerListener();

  int port() const;
  // Serves the client that has the ticket until it has measured; returns without having served if none has come within
  // `limit`. Others that connect are dismissed: after a second, if they send nothing.
  void serve(const std::string& ticket, std::chrono::milliseconds limit);

 private:
  struct Socket;
  std::unique_ptr<Socket> socket_;
};

// Measures the connection to a host that serves. Blocks until its time limits (options.connect_limit, options.duration)
// have passed. Never throws: errors are in the result, whose `from`, `to` and `interface` stay empty.
PeerPair measure(const PeerHost& to, const std::string& ticket, const PeersOptions& options);

// 128 random bits in hexadecimal.
std::string random_token();

}  // namespace ddprun::doctor
