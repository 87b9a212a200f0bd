// The store between hosts, as a client sees it.
#pragma once

#include <chrono>
#include <memory>

#include "base/store.hpp"
#include "launch/net/connection.hpp"

namespace ddprun::launch {

// Connects to the server within `timeout`; throws as Connection. The functions of the store are thread-safe. They throw
// Error(peer) if the connection is lost, from then on at once, or if another process of the job was lost while this one
// waited. allgather() costs one message to the server and one back.
std::unique_ptr<Store> net_store(StoreAddress address, std::chrono::milliseconds timeout);

}  // namespace ddprun::launch
