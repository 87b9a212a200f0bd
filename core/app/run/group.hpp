// The ranks of one job, met and joined: store, backend, and the memory in which progress is shown.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "ddprun/comm_backend.hpp"
#include "launch/progress.hpp"
#include "launch/store.hpp"
#include "launch/world.hpp"
#include "app/run/assembly.hpp"

namespace ddprun::run {

// A duration of the config, which is in seconds.
std::chrono::milliseconds milliseconds(double seconds);

struct Group {
  std::unique_ptr<launch::Store> store;             // null for a world of one
  std::unique_ptr<launch::ProgressTable> progress;  // null unless our own launcher watches
  std::unique_ptr<CommBackend> backend;       // under ddp; solo for a world of one
};

// Meets the other ranks, makes sure that all run the same experiment with the same plugins (Error(rendezvous) naming
// the first difference), and joins them into a communicator (strategy ddp). Collective.
Group join_group(const Assembly& assembly, const launch::World& world);

// Rank 0's text, to all. Collective.
std::string share(Group& group, const launch::World& world, const std::string& key, const std::string& text,
                  std::chrono::milliseconds timeout);

}  // namespace ddprun::run
