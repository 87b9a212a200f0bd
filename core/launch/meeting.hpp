// Where the ranks of a job meet.
#pragma once

#include <chrono>
#include <memory>

#include "launch/net/connection.hpp"
#include "launch/store.hpp"
#include "launch/world.hpp"

namespace ddprun::launch {

// The store of the job; null for one rank. Calls find_place(). Collective.
//  - ddprun's launcher on one host: its job folder. On several: the launcher of node 0 hosts the store.
//  - Other launchers: rank 0 hosts the store at world.master_addr:master_port, as long as its Store lives. Under
//    torchrun the agent's store has that port, so the store gets another one, which depends on the job's id.
// Throws Error(rendezvous).
std::unique_ptr<Store> open_store(World& world, std::chrono::milliseconds timeout);

// What a rank knows once it has met the others: world.local_rank, local_size and address, if the launcher did not say.
// Collective. Throws as locate().
void find_place(World& world, Store& store, std::chrono::milliseconds timeout);

// A store that this process hosts at address.host, for as long as it lives; address.port 0 is replaced by a free one.
std::unique_ptr<Store> hosted_store(StoreAddress& address, std::chrono::milliseconds timeout);

// The secret for a rendezvous at `host`: that of the environment; without one, a known one if `insecure`. Empty if
// `host` means the loopback interface here: then no other host may come. Throws Error(rendezvous) if there is none and
// other hosts can reach `host`.
Secret required_secret(const std::string& host, bool insecure);

}  // namespace ddprun::launch
