// Where the processes of a job exchange texts. The launcher has the implementations.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ddprun {

// Keys and values shared by all ranks of one job. A key is set once. Thread-safe.
class Store {
 public:
  virtual ~Store() = default;
  // Throws Error(rendezvous) if the value cannot be stored.
  virtual void set(const std::string& key, std::string_view value) = 0;
  // Waits until the key is set, and returns its value; nothing if it is not set within `timeout`. 0 or less: does not
  // wait. Throws Error(peer) if the job fails meanwhile, Error(rendezvous) if the store cannot be read.
  [[nodiscard]] virtual std::optional<std::string> get(const std::string& key, std::chrono::milliseconds timeout) = 0;
  // As get, but throws Error(rendezvous) if the key is not set within `timeout`.
  std::string require(const std::string& key, std::chrono::milliseconds timeout);
  // Gathers `value` of every rank, in rank order. `name` may be used once per job. All ranks call it. Throws as
  // require; the message names the ranks that did not come.
  virtual std::vector<std::string> allgather(const std::string& name, int rank, int size, std::string_view value,
                                             std::chrono::milliseconds timeout);
  // An allgather that can be called any number of times: the n-th call is "<name>-<n>" here. All ranks call it alike.
  // Throws as allgather. The store must outlive it.
  std::function<std::vector<std::string>(std::string_view)> numbered_allgather(std::string name, int rank, int size,
                                                                               std::chrono::milliseconds timeout);
};

// The key of a rank's value in an allgather.
inline std::string rank_key(const std::string& name, int64_t rank) {
  return name + "/" + std::to_string(rank);
}

// The error of an allgather in which ranks are missing: "1, 3".
[[noreturn]] void throw_missing_ranks(const std::string& name, int size, std::chrono::milliseconds waited,
                                      const std::string& missing);

}  // namespace ddprun
