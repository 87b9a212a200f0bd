// The rendezvous of a job: its store, and what must be equal on all ranks.
#pragma once

#include <chrono>
#include <cstdlib>
#include <memory>

#include "base/store.hpp"
#include "launch/net/net_store.hpp"
#include "launch/world.hpp"

namespace ddprun::launch {

// Joins the store of the job; null for one rank. Calls locate(). Collective.
//  - ddprun's launcher on one host: its job folder. On several: the launcher of node 0 hosts the store.
//  - Other launchers: rank 0 hosts the store at world.master_addr:master_port, as long as its Store lives. Under
//    torchrun, the agent's store already uses that port: this store gets another one, derived from the job's id.
// Throws Error(rendezvous).
std::unique_ptr<Store> open_store(World& world, std::chrono::milliseconds timeout);

// As open_store(), for torchrun too, whose agent hosts a store (c10d's TCPStore). It is in the target
// ddprun_launch_c10d, because it links LibTorch. Where world.agent_store is true, rank 0 hosts ddprun's store on a free
// port, with a new secret, and passes both to the other ranks through the agent's store. Restarted ranks do not join
// the store of an earlier attempt. Throws Error(rendezvous).
std::unique_ptr<Store> open_any_store(World& world, std::chrono::milliseconds timeout);

// The store of a job of ddprun's launcher, for a rank that does not meet the others. Throws Error(rendezvous).
std::unique_ptr<Store> own_store(World& world, std::chrono::milliseconds timeout);

// Keys as files in a folder that only this user can access (0700). Each file appears atomically, so that a reader sees
// a complete value or none. The caller creates and removes the folder.
std::unique_ptr<Store> folder_store(const std::string& folder);

// In a job that survives the death of ranks, the key of the ranks that train after so many changes: "0 2 3 "; "": all
// wait for the next change. It ends with kDied if a rank has died. The launcher of node 0 sets it.
inline std::string members_key(int changes) {
  return "members/" + std::to_string(changes);
}
inline constexpr const char* kDied = "died";
// Whether this process is a rank of such a job.
inline bool survives() {
  const char* const value = std::getenv("DDPRUN_SURVIVES");
  return value != nullptr && *value != '\0';
}
// The variable of a rank that takes the place of a dead one: the key that it sets when it is ready to train.
inline constexpr const char* kReplaces = "DDPRUN_REPLACES";

// The keys of a part of the job: each begins with `prefix` in `store`, which outlives it.
std::unique_ptr<Store> prefixed_store(Store& store, std::string prefix);

// The secret for a rendezvous at `host`: that of the environment. If there is none and `insecure` is true:
// kKnownSecret. If there is none and only processes of this host can reach `host`: empty. Otherwise
// throws Error(rendezvous).
Secret required_secret(const std::string& host, bool insecure);

// The first lines in which two texts differ, "nothing" past the end; "[table] ", the last such line before them, or "".
struct Difference {
  std::string a, b, table;
};
Difference first_difference(const std::string& a, const std::string& b);

// Parts of the error: "rank 0 and rank 3 do not run the same experiment: A and B; start all ranks with ...".
struct IdentityWords {
  std::string process = "rank";
  std::string differ;  // "do not run the same experiment"
  std::string advice;  // "start all ranks with the same config and program"
};

// Compares `mine`, one `name = value` per line with "[table]" lines between them, with those of the other processes.
// Collective; call it once per store. Throws Error(rendezvous) with the first line that differs, on all processes.
void compare_identities(Store& store, int rank, int size, const std::string& mine, std::chrono::milliseconds timeout,
                        const IdentityWords& words);
// For a process that joins the others later: compares its own identity only. Throws Error(rendezvous).
void require_identity(Store& store, const std::string& mine, std::chrono::milliseconds timeout,
                      const IdentityWords& words);

}  // namespace ddprun::launch
