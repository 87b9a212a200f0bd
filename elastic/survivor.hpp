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
#include "train/loop/step_timer.hpp"
#include "train/tensor/parameters.hpp"

namespace ddprun::elastic {

// A death interrupts a step on every remaining rank. Some may have finished this step; the others still have the
// weights of the step before, because the optimizer comes after the last collective. So the ranks meet again, and one
// that is furthest gives its state to those that are behind. All go on from the same position. With
// virtual ranks (virtual_ranks.hpp) the numbers are those of a run in which nobody died. A rank in the place of a dead
// one joins in the same way: it has the oldest state.
//
// The Trainer uses it as a policy, which must be its last one. Another loop calls begin(), finish_step() and
// after_step() itself. Training thread only.
class Survivor final : public train::Policy {
 public:
  // As Membership.
  Survivor(Store& job, int rank, int size) : job_(job), members_(job, rank, size) {}
  // Whether this process takes the place of a rank that has died.
  static bool joins();
  // For such a process, when it is ready to train. Waits until the launcher has named it a member, at most `limit` from
  // one change to the next. Then the rank meets the others as after a change. launcher: the store in which the launcher
  // of this host looks. Throws Error(rendezvous).
  void join(std::chrono::milliseconds limit, Store& launcher);

  const Membership& members() const { return members_; }

  void begin(const train::Position& at);  // throws Error(peer) if the ranks have changed
  void finish_step(const train::Position& at) {
    at_ = at;
    since_step_ = {};
  }
  void start(train::LoopState& state) override { begin(state.at); }
  void on_step_end(const record::StepRecord&, train::LoopState& state) override { finish_step(state.at); }
  // On rank 0: throws Error(peer) if a rank is about to join.
  train::Decision after_step(int64_t step) override;
  train::Decision after_epoch(const record::EpochRecord& record, train::LoopState& state) override;

  // Whether `error`, a lost peer or a failed rendezvous, came because the ranks have changed. After a lost peer, first
  // aborts `backend`, unless it is null, so that no rank waits for this one. Waits up to 10 s for the launcher's
  // report. False before the first begin() or join(). As Membership::renew().
  bool goes_on(const Error& error, CommBackend* backend);
  // After goes_on(), before the objects of this training are destroyed: keeps the optimizer's state, and restores the
  // buffers from before the interrupted step. (It has not changed the weights.) `parameters` are those of the
  // optimizer.
  void keep(VirtualRanks& ranks, torch::optim::Optimizer& optimizer, const std::vector<train::NamedTensor>& parameters);
  // Collective over the members, after goes_on(): as Membership::meet(). False if the training has ended before
  // this rank could join. Throws Error(failure) if all members that had a state have died.
  bool meet(std::chrono::milliseconds timeout);
  // On rank 0, before the ranks end: for ranks that still want to join.
  void end();
  // Collective over `ranks`, the members: overwrites model, position and optimizer state of a rank that is behind. If a
  // rank dies meanwhile, each rank has either its old state or the new one. Throws as CommBackend.
  void catch_up(const torch::nn::Module& model, const comm::Group& ranks);
  // Adds this change to changes(). What the ranks resume from. checkpoints: the folder of this run's checkpoints.
  train::ResumeFrom resume(const std::string& checkpoints);

  // The record of the last finished epoch, as record::line_of(); "" if there is none.
  const std::string& epoch() const { return epoch_; }
  // All changes of the training, also those before the checkpoint that it was resumed from.
  record::Changes changes() const;
  // The last change, after resume(): "2 ranks go on after step 19, 0.15 s after its end".
  std::string text() const;

 private:
  void require_same_members() const;

  Store& job_;
  Membership members_;
  train::Position at_;
  bool has_state_ = false;                     // begin() or join() was called
  bool is_running_ = false;                    // from begin() to meet(): the newest state is in the optimizer itself
  std::vector<train::NamedTensor> optimizer_;  // its state
  std::string epoch_;
  std::vector<checkpoint::File> met_;  // the members' positions, without tensors
  std::size_t first_ = 0;              // of met_: the first that is furthest
  train::Stopwatch since_step_, since_meeting_;
  double seconds_ = 0;                                // from the last step of the rank that is furthest until resume()
  std::chrono::steady_clock::time_point next_check_;  // for ranks that join
};

}  // namespace ddprun::elastic
