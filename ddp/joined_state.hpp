// A group of ranks that have joined a backend: that of init(), and its subgroups.
#pragma once

#include <memory>
#include <string>

#include "ddp/group_state.hpp"
#include "ddp/join.hpp"
#include "launch/progress.hpp"
#include "launch/world.hpp"

namespace ddprun::ddp {

struct JoinedState final : Group::State {
  // A process that this one forks has no part in the group: there, the state is never destroyed.
  static std::shared_ptr<JoinedState> make();
  ~JoinedState() override;
  void set_progress(launch::Progress progress) const override;

  // From now on the collectives throw: this rank is not one of those that train.
  void stay_out();
  // Joins the backend of `wanted`; `whose` becomes comm::JoinOptions::whose. Collective. Throws what init() throws.
  void join(const GroupOptions& wanted, const std::string& whose = "");

  // Of a subgroup: the group that it was split from (declared first, because what is below uses the parent's), and its
  // name in the job, which no other group has.
  std::shared_ptr<JoinedState> parent;
  std::string name;

  GroupOptions options;
  Store* job = nullptr;  // the store of a job that survives deaths; otherwise null
  launch::World world;
  int job_rank = 0;  // this rank's number in the job
  Rendezvous rendezvous;
  std::unique_ptr<launch::ProgressTable> table;  // of the job, under ddprun's launcher; otherwise null
  Joined joined;
  int splits = 0, barriers = 0;  // calls until now
  bool has_trained = false;      // by train_elastic()
};

}  // namespace ddprun::ddp
