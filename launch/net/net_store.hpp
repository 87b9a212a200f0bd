// The store between hosts: its server and its clients.
#pragma once

#include <chrono>
#include <memory>

#include "base/store.hpp"
#include "launch/net/secret.hpp"

namespace ddprun::launch {

// A thread that keeps the keys of the job. It runs in the launcher of node 0, or in rank 0 under other launchers. At
// its end it sends what is queued, for at most half a second, and closes all connections.
class StoreServer {
 public:
  virtual ~StoreServer() = default;
  virtual int port() const = 0;
};

// Listens on listening_addresses() of the address, at its port (0: the kernel chooses one), and nowhere else. Throws
// Error(rendezvous), which names the process that has the port if it is in use. The thread has all signals blocked.
//
// Processes that do not know the secret can do little harm: their connections use at most a quarter of this process's
// file descriptors, each is closed after 2 s, and nothing that they send is parsed.
//
// survives: a lost node does not end the requests that wait.
std::unique_ptr<StoreServer> store_server(const StoreAddress& address, bool survives = false);

// Connects to the server within `timeout`; throws as Connection. The functions of the store throw Error(peer) if the
// connection is lost, from then on at once, or if another process of the job was lost while this one waited (not if the
// job survives that).
// allgather() costs one message to the server and one back.
std::unique_ptr<Store> net_store(StoreAddress address, std::chrono::milliseconds timeout);

// A store whose server runs in this process, at address.host, until the store is destroyed. If address.port is 0, a
// free port is chosen and written there. Throws as StoreServer.
std::unique_ptr<Store> hosted_store(StoreAddress& address, std::chrono::milliseconds timeout);

}  // namespace ddprun::launch
