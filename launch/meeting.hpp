// Where the ranks of a job meet.
#pragma once

#include <chrono>
#include <memory>

#include "base/store.hpp"
#include "launch/net/connection.hpp"
#include "launch/world.hpp"

namespace ddprun::launch {

// Joins the store of the job; null for one rank. Calls find_place(). Collective.
//  - ddprun's launcher on one host: its job folder. On several: the launcher of node 0 hosts the store.
//  - Other launchers: rank 0 hosts the store at world.master_addr:master_port, as long as its Store lives. Under
//    torchrun, the agent's store already uses that port: this store gets another one, derived from the job's id.
// Throws Error(rendezvous).
std::unique_ptr<Store> open_store(World& world, std::chrono::milliseconds timeout);

// Sets what a rank knows only after it has met the others: world.cores, address and restarts, and local_rank and
// local_size if the launcher did not set them. Collective. Throws as locate().
void find_place(World& world, Store& store, std::chrono::milliseconds timeout);

// A store whose server runs in this process, at address.host, until the store is destroyed. If address.port is 0, a
// free port is chosen and written there. Throws as StoreServer.
std::unique_ptr<Store> hosted_store(StoreAddress& address, std::chrono::milliseconds timeout);

// Keys as files in a folder that only this user can access (0700). Each file appears atomically, so that a reader sees
// a complete value or none. The caller creates and removes the folder.
std::unique_ptr<Store> folder_store(const std::string& folder);

// The keys of a part of the job: each begins with `prefix` in `store`, which outlives it.
std::unique_ptr<Store> prefixed_store(Store& store, std::string prefix);

// The secret for a rendezvous at `host`: that of the environment; without one, a known one if `insecure`. Empty if only
// processes of this host can reach `host`. Otherwise throws Error(rendezvous).
Secret required_secret(const std::string& host, bool insecure);

}  // namespace ddprun::launch
