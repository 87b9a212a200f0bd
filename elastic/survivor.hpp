// Survivor: a rank goes on with training in the same process after other ranks have died or joined, without losing a
// step.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <string>
#include <vector>

#include "comm/group.hpp"
#include "elastic/membership.hpp"
#include "elastic/virtual_ranks.hpp"
#include "train/loop/checkpointing.hpp"
#include "train/loop/policy.hpp"
#include "train/tensor/parameters.hpp"

namespace ddprun::elastic {

// A death interrupts a step on every rank that is left. Some may have finished this step; the others still have the
// weights of the step before, because the optimizer comes after the last collective. So the ranks meet again, and one
// that is furthest gives its state to those that are behind. All go on from the same position. With
// virtual ranks (virtual_ranks.hpp) the numbers are those of a run in which nobody died. A rank in the place of a dead
// one joins in the same way: it has the oldest state.
//
// As a policy, the last one, it notes the position after each step. Training thread only.
class Survivor final : public train::Policy {
 public:
  // As Membership.
  Survivor(Store& job, int rank, int size) : members_(job, rank, size) {}
  // Instead of start(), for a rank that joins a job: waits until the launcher has named it a member, at most `limit`
  // from one change to the next. Then regroup as after a change. Throws Error(rendezvous).
  void join(std::chrono::milliseconds limit);

  const Membership& members() const { return members_; }

  void start(train::LoopState& state) override;  // throws Error(peer) if the ranks have changed
  void on_step_end(const record::StepRecord& record, train::LoopState& state) override;
  // On rank 0: throws Error(peer) if a rank is about to join.
  train::Decision after_step(int64_t step) override;
  train::Decision after_epoch(const record::EpochRecord& record, train::LoopState& state) override;

  // Whether `error`, a lost peer or a failed rendezvous, came because the ranks have changed: waits up to 10 s for the
  // launcher's report. False before the first start(): then there is no state yet to go on from. As
  // Membership::renew().
  bool have_changed(const Error& error);
  // After have_changed(), before the objects of this training are destroyed: keeps the optimizer's state, and undoes
  // what the interrupted step has changed in the model. `parameters` are those of the optimizer.
  void keep(VirtualRanks& ranks, torch::optim::Optimizer& optimizer, const std::vector<train::NamedTensor>& parameters);
  // Collective over the members, after have_changed(): as Membership::meet(). False if no member has a state: the
  // training has ended before this rank could join, or all that had it have died.
  bool meet(std::chrono::milliseconds timeout);
  // Collective over `ranks`, the members: overwrites model, position and optimizer state of a rank that is behind. If a
  // rank dies meanwhile, each rank has either its old state or the new one. Throws as CommBackend.
  void catch_up(const torch::nn::Module& model, const comm::Group& ranks);
  // Adds this change to changes(). What the ranks resume from. checkpoints: the folder of this run's checkpoints.
  train::ResumeFrom resume(const std::string& checkpoints);

  // The record of the last finished epoch, as record::append_json(); "" if there is none.
  const std::string& epoch() const { return epoch_; }
  // All changes of the training, also those before the checkpoint that it was resumed from.
  record::Changes changes() const;
  // The last change, after resume(): "2 ranks go on after step 19, 0.15 s after its end".
  std::string text() const;

 private:
  void require_same_members() const;

  Membership members_;
  train::Position at_;
  bool has_state_ = false;                     // since the first start()
  bool is_running_ = false;                    // since start(), until the ranks meet: the optimizer has the state
  std::vector<train::NamedTensor> optimizer_;  // its state
  std::string epoch_;
  std::vector<Member> met_;
  std::size_t first_ = 0;  // of met_: the first that is furthest
  using Clock = std::chrono::steady_clock;
  Clock::time_point finished_ = Clock::now();  // the last step
  Clock::time_point met_at_;
  double seconds_ = 0;            // from the last step of the rank that is furthest until resume()
  Clock::time_point next_check_;  // for ranks that join
};

}  // namespace ddprun::elastic
