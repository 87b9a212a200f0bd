// launch: who am I (rank discovery), where do the ranks meet (Store), and who watches over them (Supervisor).
// Torch-free.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace ddprun::launch {

// Keys and values that all ranks of one job share. A key is set once. Any thread.
class Store {
 public:
  virtual ~Store() = default;
  // Throws Error(rendezvous) when the value cannot be kept.
  virtual void set(const std::string& key, std::string_view value) = 0;
  // Waits until the key is there. Throws Error(rendezvous) at the deadline, or when the job has failed meanwhile.
  virtual std::string get(const std::string& key, std::chrono::milliseconds timeout) = 0;
};

// Gathers `value` of every rank, in rank order, under a name that is used once per job. All ranks call it. Throws as
// get.
std::vector<std::string> allgather(Store& store, const std::string& name, int rank, int size, std::string_view value,
                                   std::chrono::milliseconds timeout);

// Keys as files in a folder that only this user can enter (0700), each written aside and renamed, so that a reader sees
// a whole value or none. The folder stays; its maker removes it.
std::unique_ptr<Store> folder_store(const std::string& folder);

}  // namespace ddprun::launch
