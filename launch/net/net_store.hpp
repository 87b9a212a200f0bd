// The store between hosts.
#pragma once

#include <chrono>
#include <memory>

#include "base/store.hpp"
#include "launch/net/secret.hpp"

namespace ddprun::launch {

// Connects to the server within `timeout`; throws as Connection. The functions of the store throw Error(peer) if the
// connection is lost, from then on at once, or if another process of the job was lost while this one waited.
// allgather() costs one message to the server and one back.
std::unique_ptr<Store> net_store(StoreAddress address, std::chrono::milliseconds timeout);

// A store whose server runs in this process, at address.host, until the store is destroyed. If address.port is 0, a
// free port is chosen and written there. Throws as StoreServer.
std::unique_ptr<Store> hosted_store(StoreAddress& address, std::chrono::milliseconds timeout);

}  // namespace ddprun::launch
