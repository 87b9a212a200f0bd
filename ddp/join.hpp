// The rendezvous of the ranks of one job, and how they join a backend.
#pragma once

#include <torch/torch.h>

#include <chrono>
#include <memory>
#include <string>

#include "base/store.hpp"
#include "comm/flight_recorder.hpp"
#include "comm/plugin_backend.hpp"
#include "ddprun/comm_backend.hpp"
#include "ddprun/plugin/comm_plugin.h"
#include "launch/rank_watch.hpp"
#include "launch/world.hpp"

namespace ddprun::ddp {

// After it the ranks can exchange texts.
struct Rendezvous {
  std::unique_ptr<Store> store;             // null for world size 1
  std::shared_ptr<launch::RankWatch> link;  // under another launcher; otherwise null
};

// Joins the store, and links the ranks if another launcher started them. Sets what `world` lacks: which ranks are on
// this host, and their cores. ends_process: a linked rank that still runs 2 s after another one has failed ends with
// this cause. Collective. Throws Error(rendezvous).
Rendezvous join_rendezvous(launch::World& world, std::chrono::milliseconds timeout, bool ends_process = true);

// What this rank ends with, after `error`: the first cause, if it only lost a peer. Reports the error to linked ranks.
Error first_cause(const Rendezvous& rendezvous, const Error& error);

// How a rank joins. join_backend() sets the other members of comm::JoinOptions.
struct JoinSettings {
  comm::JoinOptions plugin;           // deadline, algorithm, deterministic, options, whose
  torch::Device device{torch::kCPU};  // of the tensors
  bool stage_through_host = false;    // comm.stage_through_host
  bool compare_calls = true;          // comm.check
  std::string part{};                 // of a part of the job: a name that no other part has, for files
};

struct Joined {
  std::unique_ptr<CommBackend> backend;
  std::shared_ptr<comm::FlightRecorder> recorder;
};

// For more than one rank. `rendezvous` outlives the backend. Collective. Throws as comm::join.
Joined join_backend(const ddprun_comm_plugin& plugin, const JoinSettings& settings, const launch::World& world,
                    const Rendezvous& rendezvous);

}  // namespace ddprun::ddp
