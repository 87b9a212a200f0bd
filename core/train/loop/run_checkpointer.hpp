// A run's checkpoints: the model's weights, and beside them what going on bit for bit needs.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/folder.hpp"
#include "train/loop/checkpointing.hpp"
#include "train/loop/parameters.hpp"

namespace ddprun::train {

class BucketedReducer;

// What a run goes on from.
struct ResumeFrom {
  checkpoint::Commit commit;
  // The commit is of as many ranks: each takes its own state, and the run goes on bit for bit. Else it is the end of an
  // epoch: all take weights and optimizer from it, and random states are drawn anew.
  bool same_world = true;
};

// What is kept; owned elsewhere, and alive as long as the checkpointer.
struct TrainingState {
  const torch::nn::Module& module;
  torch::optim::Optimizer& optimizer;
  const std::vector<NamedTensor>& parameters;  // the optimizer's
  BucketedReducer* reducer = nullptr;          // under ddp
  int rank = 0;
  bool own_buffers = false;              // every rank's buffers differ: strategy.sync_buffers = false
  std::vector<torch::Device> gpus = {};  // whose random states count: those of this rank, under dp of its replicas
};

struct CheckpointerOptions {
  std::string dir;                                 // of the checkpoints
  checkpoint::CheckpointFolder* folder = nullptr;  // rank 0's
  checkpoint::Metadata metadata;                   // of the model files
  checkpoint::Metadata state_metadata;             // of this rank's states
  std::string best;                                // the measure that save_best() goes by, for its metadata
  uint64_t seed = 0;                               // of random states that are drawn anew
  std::optional<ResumeFrom> resume;
};

// A model file holds parameters and buffers under the names of PyTorch's state_dict. A state file holds the state of
// Torch's generators, of the CPU and of this rank's GPUs, and the position; rank 0's the optimizer's state and the
// order of the buckets besides, those of other ranks their buffers where these differ. Throws what CheckpointFolder and
// read_safetensors() throw. Files are the same whatever the device, and are read to any: one on which a GPU's random
// state does not lie keeps its own.
std::unique_ptr<Checkpointer> run_checkpointer(TrainingState state, CheckpointerOptions options);

}  // namespace ddprun::train
