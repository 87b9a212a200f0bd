// The checkpoints of a run: the model's weights, and the state that a resumed run needs to continue bit for bit.
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

// What a run resumes from.
struct ResumeFrom {
  checkpoint::Commit commit;
  // True if the checkpoint has the same number of ranks: each rank restores its own state, and the run continues bit
  // for bit. Otherwise the checkpoint is at the end of an epoch: all ranks restore weights and optimizer from it, and
  // random states are seeded again.
  bool same_world = true;
};

// The objects whose state is saved. The checkpointer does not own them; they must outlive it.
struct TrainingState {
  const torch::nn::Module& module;
  torch::optim::Optimizer& optimizer;
  const std::vector<NamedTensor>& parameters;  // the optimizer's parameters
  BucketedReducer* reducer = nullptr;          // under ddp
  int rank = 0;
  bool own_buffers = false;  // the ranks have different buffers: strategy.sync_buffers = false
  // GPUs whose random states are saved: this rank's GPU, or under dp those of the replicas
  std::vector<torch::Device> gpus = {};
};

struct CheckpointerOptions {
  std::string dir;                                 // of the checkpoints
  checkpoint::CheckpointFolder* folder = nullptr;  // rank 0's
  checkpoint::Metadata metadata;                   // of the model files
  checkpoint::Metadata state_metadata;             // of this rank's states
  std::string best;                                // the metric that save_best() uses, for its metadata
  uint64_t seed = 0;                               // for random states that are seeded again
  std::optional<ResumeFrom> resume;
};

// A model file holds parameters and buffers under the names of PyTorch's state_dict. A state file holds the position
// and the states of Torch's random generators, of the CPU and of this rank's GPUs. Rank 0's state file also holds the
// optimizer's state and the bucket order; the other ranks' files hold their buffers if these differ. The files do not
// depend on the device and can be restored to any device. A file without a random state for a GPU leaves that GPU's
// generator unchanged. Throws what CheckpointFolder and read_safetensors() throw.
std::unique_ptr<Checkpointer> run_checkpointer(TrainingState state, CheckpointerOptions options);

}  // namespace ddprun::train
