// The ranks of one job after rendezvous: store, backend, and progress table.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "app/run/assembly.hpp"
#include "comm/flight_recorder.hpp"
#include "ddprun/comm_backend.hpp"
#include "launch/progress.hpp"
#include "launch/store.hpp"
#include "launch/world.hpp"

namespace ddprun::run {

// Converts a config duration, in seconds.
std::chrono::milliseconds milliseconds(double seconds);

struct Group {
  std::unique_ptr<launch::Store> store;             // null for world size 1
  std::unique_ptr<launch::ProgressTable> progress;  // null unless our own launcher watches
  std::shared_ptr<comm::FlightRecorder> recorder;   // of the backend; null for world size 1
  std::unique_ptr<CommBackend> backend;             // under ddp; the single-process backend for world size 1
};

// Where the ranks meet: null for world size 1. Finds out which ranks share this host and its cores, if another
// launcher started them. Collective. Throws Error(rendezvous).
std::unique_ptr<launch::Store> open_store(launch::World& world, std::chrono::milliseconds timeout);

// Checks that all ranks run the same experiment with the same plugins; Error(rendezvous) names the first difference.
// Then joins them with a backend (strategy ddp). Collective.
Group join_group(const Assembly& assembly, const launch::World& world, std::unique_ptr<launch::Store> store);

// Sends rank 0's text to all ranks. Collective.
std::string broadcast_text(Group& group, const launch::World& world, const std::string& key, const std::string& text,
                           std::chrono::milliseconds timeout);

}  // namespace ddprun::run
