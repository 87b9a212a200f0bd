// launch: rank discovery, rendezvous (Store), and supervision of the ranks (Supervisor). Torch-free.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace ddprun::launch {

struct StoreAddress;

// Keys and values shared by all ranks of one job. A key is set once. Thread-safe.
class Store {
 public:
  virtual ~Store() = default;
  // Throws Error(rendezvous) if the value cannot be stored.
  virtual void set(const std::string& key, std::string_view value) = 0;
  // Waits until the key is set. Throws Error(rendezvous) at the deadline, or if the job fails meanwhile.
  virtual std::string get(const std::string& key, std::chrono::milliseconds timeout) = 0;
  // Gathers `value` of every rank, in rank order. `name` may be used once per job. All ranks call it. Throws as get;
  // the message names the ranks that did not come.
  virtual std::vector<std::string> allgather(const std::string& name, int rank, int size, std::string_view value,
                                             std::chrono::milliseconds timeout);
  // The server behind this store, for further connections; null if it has none.
  virtual const StoreAddress* server() const { return nullptr; }
};

// The error of an allgather in which ranks are missing: "1, 3".
[[noreturn]] void throw_missing_ranks(const std::string& name, int size, std::chrono::milliseconds waited,
                                      const std::string& missing);

// The keys of a part of the job: each begins with `prefix` in `store`, which outlives it. It has no server.
std::unique_ptr<Store> prefixed_store(Store& store, std::string prefix);

// Keys as files in a folder that only this user can access (0700). Each file appears atomically, so that a reader sees
// a complete value or none. The caller creates and removes the folder.
std::unique_ptr<Store> folder_store(const std::string& folder);

}  // namespace ddprun::launch
