// GradientSync: keeps the gradients and buffers of a model equal on all ranks.
#pragma once

#include <torch/torch.h>

#include <functional>
#include <vector>

#include "comm/group.hpp"
#include "ddprun/phase.hpp"
#include "train/reduce/bucketed_reducer.hpp"
#include "train/reduce/gradient_hooks.hpp"
#include "train/tensor/parameters.hpp"

namespace ddprun::train {

struct GradientSyncOptions {
  ReducerOptions reducer;
  bool broadcast_buffers = true;
};

// What DistributedDataParallel of the library and strategy ddp of the command share. In each step: backward, during
// which full buckets are reduced, then finalize.
//
// One thread calls it: the one that runs backward. All functions are collective, and throw as the backend.
class GradientSync {
 public:
  // The group has a backend. The model's parameters must not be replaced meanwhile. Throws Error(usage) if no
  // parameter requires a gradient, and as GradientHooks.
  GradientSync(ModelTensors model, comm::Group ranks, GradientSyncOptions options);

  // Overwrites parameters and buffers with those of a rank.
  void broadcast_state(int root = 0);
  // Overwrites the buffers that the model has now (BatchNorm's running statistics), unless broadcast_buffers is off.
  void broadcast_buffers(int root = 0);

  // After a backward that threw, instead of finalize. The ranks may go on if it threw on all of them at the same place.
  void abandon() noexcept;
  // After the last backward of a step. Afterwards the gradients are the averages over the ranks.
  void finalize();
  // Replaces backward and finalize on a rank without samples, whose gradients count as zero. Afterwards this rank has
  // the averages too. skip() reports zeros as gradients of this rank; with reducer().finalize_zeros(), it has none.
  void skip();

  void set_on_phase(std::function<void(Phase phase, int bucket)> on_phase);
  GradientHooks& hooks() { return hooks_; }
  BucketedReducer& reducer() { return reducer_; }
  const std::vector<NamedTensor>& parameters() const { return parameters_; }

 private:
  const ModelTensors model_;
  const comm::Group ranks_;
  const bool broadcasts_buffers_;
  std::function<void(Phase, int)> on_phase_;
  const std::vector<NamedTensor> parameters_;
  BucketedReducer reducer_;
  GradientHooks hooks_;  // last member: it uses the reducer
};

}  // namespace ddprun::train
