// The ranks of a job that another launcher, or ddprun's own with --nnodes, has started, on any number of hosts.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/store.hpp"
#include "launch/world.hpp"
#include "tools/bench/plan.hpp"

namespace ddprun::bench {

// The keys of one turn in the job's store, in which each key may be set once.
class StoreOfTurn : public Store {
 public:
  StoreOfTurn(Store& store, std::string turn) : store_(store), turn_(std::move(turn)) {}

  void set(const std::string& key, std::string_view value) override { store_.set(turn_ + key, value); }
  std::string get(const std::string& key, std::chrono::milliseconds timeout) override {
    return store_.get(turn_ + key, timeout);
  }
  std::vector<std::string> allgather(const std::string& name, int rank, int size, std::string_view value,
                                     std::chrono::milliseconds timeout) override {
    return store_.allgather(turn_ + name, rank, size, value, timeout);
  }

 private:
  Store& store_;
  const std::string turn_;
};

// The hosts of all ranks. Collective. Throws Error(rendezvous) that names a rank if it would measure something else
// than rank 0.
std::vector<HostRanks> compare_plans(const Plan& plan, Store& store, const launch::World& world);

}  // namespace ddprun::bench
