// How a rank reaches the other ranks of its job.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "base/store.hpp"
#include "cli/run/assembly.hpp"
#include "comm/flight_recorder.hpp"
#include "comm/group.hpp"
#include "ddp/join.hpp"
#include "ddprun/comm_backend.hpp"
#include "ddprun/group.hpp"
#include "launch/progress.hpp"
#include "launch/rank_watch.hpp"
#include "launch/world.hpp"

namespace ddprun::run {

using ddp::join_rendezvous;
using ddp::Rendezvous;

struct Connections {
  Store* store = nullptr;                          // of the Rendezvous, or null
  launch::RankWatch* link = nullptr;               // of the Rendezvous, or null
  std::unique_ptr<launch::ProgressTable> table;    // under our own launcher; otherwise null
  std::shared_ptr<comm::FlightRecorder> recorder;  // of the backend; null for world size 1
  std::unique_ptr<CommBackend> backend;            // under ddp; the single-process backend for world size 1
  comm::Group ranks;                               // those of the backend; without one, this rank
  std::optional<Group> tensors;                    // the same ranks, for the library's classes; empty without a backend

  // Where this rank reports its progress; null if there is no launcher.
  launch::ProgressTable* progress() const { return link != nullptr ? &link->progress() : table.get(); }
};

// Calls `body`, the rest of this rank. If it throws on one rank, the linked ranks end too. A rank that only lost a peer
// throws the first cause.
void run_linked(const Rendezvous& rendezvous, const std::function<void()>& body);

// Of a rank that joins a job later: as connect(), which the others have called. Throws Error(rendezvous).
void require_same_experiment(const Assembly& assembly, Store& job);

// Checks that all ranks run the same experiment with the same plugins; Error(rendezvous) names the first difference.
// Then joins them with a backend (strategy ddp). Collective.
// changes: how often the ranks have changed until now (elastic/membership.hpp).
Connections connect(const Assembly& assembly, const launch::World& world, const Rendezvous& rendezvous,
                    int changes = 0);

}  // namespace ddprun::run
