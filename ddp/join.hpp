// The rendezvous of the ranks of one job, and how they join a backend.
#pragma once

#include <torch/torch.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/store.hpp"
#include "comm/flight_recorder.hpp"
#include "ddprun/comm_backend.hpp"
#include "ddprun/plugin/comm_plugin.h"
#include "launch/rank_link.hpp"
#include "launch/world.hpp"

namespace ddprun::ddp {

// After it the ranks can exchange texts.
struct Rendezvous {
  std::unique_ptr<Store> store;            // null for world size 1
  std::shared_ptr<launch::RankLink> link;  // under another launcher; otherwise null
};

// Joins the store, and links the ranks if another launcher started them. Sets what `world` lacks: which ranks are on
// this host, and their cores. ends_process: a linked rank that still runs 2 s after another one has failed ends with
// this cause. Collective. Throws Error(rendezvous).
Rendezvous join_rendezvous(launch::World& world, std::chrono::milliseconds timeout, bool ends_process = true);

// What this rank ends with, after `error`: the first cause, if it only lost a peer. Reports the error to linked ranks.
Error first_cause(const Rendezvous& rendezvous, const Error& error);

struct JoinSettings {
  const ddprun_comm_plugin* plugin = nullptr;
  torch::Device device{torch::kCPU};     // of the tensors
  std::chrono::milliseconds deadline{};  // of joining, and of one collective
  std::string algorithm = "auto";
  bool deterministic = false;
  bool stage_through_host = false;               // comm.stage_through_host
  bool compare_calls = true;                     // comm.check
  std::map<std::string, std::string> options{};  // comm.options
  // Of a part of the job: a name that no other part has, for files; and comm::JoinOptions::whose.
  std::string part{}, whose{};
};

struct Joined {
  std::unique_ptr<CommBackend> backend;
  std::shared_ptr<comm::FlightRecorder> recorder;
};

// For more than one rank. `rendezvous` outlives the backend. Collective. Throws as comm::join.
Joined join_backend(const JoinSettings& settings, const launch::World& world, const Rendezvous& rendezvous);

}  // namespace ddprun::ddp
