// Checkpointer: saves the state of a training and restores it. And what decides when.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "checkpoint/folder.hpp"
#include "train/loop/policy.hpp"
#include "train/tensor/parameters.hpp"

namespace ddprun::train {

// Every rank has one and calls it at the same points.
class Checkpointer {
 public:
  virtual ~Checkpointer() = default;
  // Once, when the replicas are equal and before the first step. Restores the state to resume from and returns its
  // position; Position{} for a new run. Not collective, so a rank may take longer than a timeout.
  virtual Position restore() = 0;
  // Called directly after restore(). Collective: restores what all ranks must restore together.
  virtual void restore_together() = 0;
  // Collective, before save_state(): brings the optimizer's state to rank 0, if the ranks have divided it.
  virtual void consolidate() {}
  // Saves this rank's state for the next checkpoint. All ranks have returned before save() is called.
  virtual void save_state(const Position& position) = 0;
  // Brings the states of ranks that do not share rank 0's disk to rank 0. Collective, after save_state().
  virtual void gather_states(int64_t step) = 0;
  // Rank 0: commits the weights after a step, with the number of complete epochs. Returns the path.
  virtual std::string save(int64_t step, int64_t epochs) = 0;
  // Rank 0: keeps the weights after a step as the best, with the value of their metric. Returns the path.
  virtual std::string save_best(int64_t step, int64_t epochs, double value) = 0;
};

// When to commit, besides the end of training.
struct CheckpointRule {
  int64_t every_epochs = 1;  // 0: not after epochs
  int64_t every_steps = 0;   // 0: not after steps
  // What to do if a checkpoint cannot be written. False: the error ends the training. True: a warning; the checkpoint
  // is left out on all ranks.
  bool may_fail = false;
  // Steps between two progress lines. Checkpoints within an epoch that come more often are logged at level debug, all
  // others at level info.
  int64_t log_every = 1;
};

// Resumes the training. Commits by the rule, when a policy decides so, and when training ends. All functions but
// is_due() are collective.
class Checkpoints {
 public:
  Checkpoints(Checkpointer& checkpointer, CheckpointRule rule) : checkpointer_(checkpointer), rule_(rule) {}

  // Sets state.at to the position to resume from.
  void resume(LoopState& state);
  // Whether the rule demands a commit after this step.
  bool is_due(int64_t step) const { return rule_.every_steps > 0 && step % rule_.every_steps == 0; }
  // Commits after a step. All steps have been reported, and `state.at` is complete.
  void after_step(LoopState& state);
  // After the steps of an epoch, or of the part of an epoch before a stop. It comes before the evaluation, so that an
  // interrupted evaluation loses no progress.
  void after_epoch(LoopState& state);
  // Once per step.
  void commit(LoopState& state, log::Level level = log::Level::info);

 private:
  Checkpointer& checkpointer_;
  const CheckpointRule rule_;
  int64_t committed_ = -1;  // the step of the last commit
};

// Keeps the weights of the best epoch by a metric (policies.hpp). Must come before EarlyStop, whose last checkpoint
// says which epoch is the best.
class BestWeights final : public Policy {
 public:
  // may_fail: as in CheckpointRule.
  BestWeights(Checkpointer& checkpointer, std::string metric, bool may_fail = false)
      : checkpointer_(checkpointer), metric_(std::move(metric)), may_fail_(may_fail) {}

  Decision after_epoch(const record::EpochRecord& record, LoopState& state) override;

 private:
  Checkpointer& checkpointer_;
  const std::string metric_;
  const bool may_fail_;
};

class BucketedReducer;

// What a run resumes from.
struct ResumeFrom {
  checkpoint::Commit commit;
  // True if the checkpoint has the same number of ranks: each rank restores its own state, and the run continues bit
  // for bit. Otherwise the checkpoint is at the end of an epoch: all ranks restore weights and optimizer from it, and
  // random states are seeded again.
  bool same_world = true;
  std::map<int, checkpoint::File> states = {};  // checkpoint::states_for() this rank
};

// The objects whose state is saved. The checkpointer does not own them; they must outlive it.
struct TrainingState {
  const torch::nn::Module& module;
  torch::optim::Optimizer& optimizer;
  const std::vector<NamedTensor>& parameters;  // the optimizer's parameters
  BucketedReducer* reducer = nullptr;          // under ddp
  int rank = 0;                                // with virtual ranks, the first of this rank
  bool own_buffers = false;                    // the ranks have different buffers: strategy.broadcast_buffers = false
  // GPUs whose random states are saved: this rank's GPU, or under dp those of the replicas
  std::vector<torch::Device> gpus = {};
  // The number of this rank's virtual ranks, each with a state file. in_part(i, f) calls f with the state of the i-th.
  int parts = 1;
  std::function<void(int part, const std::function<void()>& body)> in_part = [](int, const auto& body) { body(); };
  // Under ZeRO: brings the optimizer's whole state to rank 0, until the next step. Collective.
  std::function<void()> consolidate = {};
};

struct CheckpointerOptions {
  std::string dir;                                 // of the checkpoints
  checkpoint::CheckpointFolder* folder = nullptr;  // rank 0's
  checkpoint::Metadata metadata;                   // of the model files
  checkpoint::Metadata state_metadata;             // of this rank's states
  std::string best;                                // the metric that save_best() uses, for its metadata
  uint64_t seed = 0;                               // for random states that are seeded again
  std::optional<ResumeFrom> resume;
  // Copies the states of ranks that do not share rank 0's disk to rank 0, given the path of each. Collective; may be
  // empty.
  std::function<void(const std::function<std::string(int rank)>& state_of)> gather;
};

// A model file holds parameters and buffers under the names of PyTorch's state_dict. A state file holds the position
// and the states of Torch's random generators, of the CPU and of this rank's GPUs. Rank 0's state file also holds the
// optimizer's state and the bucket order; the other ranks' files hold their buffers if these differ. The files are the
// same with and without ZeRO.
// The files do not depend on the device and can be restored to any device. A file without a random state for a GPU
// leaves that GPU's generator unchanged. Throws what CheckpointFolder and read_safetensors() throw.
std::unique_ptr<Checkpointer> run_checkpointer(TrainingState state, CheckpointerOptions options);

}  // namespace ddprun::train
