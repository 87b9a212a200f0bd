// The server of the store between hosts: a thread that keeps the keys of the job. It runs in the launcher of node 0, or
// in rank 0 under other launchers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "launch/net/secret.hpp"

namespace ddprun::launch {

class StoreServer {
 public:
  // Listens on these numeric addresses at one port (0: the kernel chooses one), and nowhere else. Throws
  // Error(rendezvous), which names the process that has the port if it is in use. The thread has all signals blocked.
  //
  // Processes that do not know the secret can do little harm: their connections use at most a quarter of this process's
  // file descriptors, each is closed after 2 s, and nothing that they send is parsed.
  StoreServer(const std::vector<std::string>& addresses, int port, Secret secret);
  // Sends what is queued, for at most half a second, and closes all connections.
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  int port() const;

 private:
  class Server;
  std::unique_ptr<Server> server_;
};

}  // namespace ddprun::launch
