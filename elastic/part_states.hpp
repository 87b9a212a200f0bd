// PartStates: what each virtual rank has of its own.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "elastic/tree.hpp"
#include "train/tensor/parameters.hpp"

namespace ddprun::elastic {

// Of VirtualRanks.
struct VirtualRanksOptions {
  int count = 1;
  uint64_t seed = 0;                    // as PartStates::seed()
  bool find_unused_parameters = false;  // as ReducerOptions
  // Each virtual rank keeps its own buffers. Otherwise each begins a step with the same buffers, and those of virtual
  // rank 0 count, as under ddp with broadcast_buffers.
  bool own_buffers = false;
  std::vector<torch::Device> gpus = {};  // those whose generators the model uses; a CPU is left out
  std::string compression = "none";      // of what is sent: "none", "fp16" or "bf16", as strategy.compression
  // The ranks go on after others have died (survivor.hpp). Random numbers depend on seed, step and virtual rank only,
  // and the buffers are made equal at the end of a step: at the beginning of the next one, they might be lost with rank
  // 0.
  bool survives = false;
  bool in_program = false;  // a program calls VirtualRanks::run(), and uses Torch's generators between the steps too
  // Where the synchronized BatchNorms of the model look for Lockstep::gather() during a step; null: it has none. On a
  // CPU only.
  std::function<torch::Tensor(const torch::Tensor& row)>* gather_rows = nullptr;
  bool is_checked = false;  // the check of the first step has run, before an earlier change of the ranks
};

// What each of this rank's virtual ranks has of its own: the state of random generators, and buffers (BatchNorm's
// running statistics). Single-threaded.
class PartStates {
 public:
  // share: of this rank. The model must outlive it.
  PartStates(train::ModelTensors model, Range share, const VirtualRanksOptions& options);

  // Seeds the generators of each virtual rank with `seed` and its number, as a rank is seeded.
  void seed(uint64_t seed);
  // From now on, as with VirtualRanksOptions::survives: seeds each virtual rank again in each step.
  void seed_steps() { seeds_steps_ = true; }
  // Calls `body` with the state of the virtual rank of this number within the share, and keeps what it changes. Call it
  // for 0, 1, ... in turn, up to the last of the share. Throws what `body` throws.
  void run(int part, const std::function<void()>& body, int64_t step = 0);
  // The same for a part that others interrupt: enter, leave, enter, leave, ...
  void enter(int part, bool is_first, int64_t step);
  void leave(int part, bool is_last);
  // Calls `body`. Then the generators are as before.
  void apart(const std::function<void()>& body);
  // Calls `body` with the state of the first part, and undoes what it changes.
  void run_and_undo(const std::function<void()>& body, int64_t step);
  // Keeps the buffers, and restores them: those after the last finished step. roll_back() does nothing before keep().
  void keep();
  void roll_back();

 private:
  struct State {
    std::vector<torch::Tensor> random;   // by generator
    std::vector<torch::Tensor> buffers;  // if they are its own, or while it is interrupted
  };

  void begin(int part, int64_t step);
  void end(int part);
  std::vector<torch::Tensor> random() const;
  void set_random(const std::vector<torch::Tensor>& states);
  std::vector<torch::Tensor> buffers() const;

  const train::ModelTensors model_;
  const Range share_;
  const bool own_buffers_;
  bool seeds_steps_;
  uint64_t seed_ = 0;
  std::vector<at::Generator> generators_;
  std::vector<State> states_;                  // by part; empty for one part, whose state is the process's
  std::vector<torch::Tensor> before_, first_;  // buffers before the step, and after the first part
  std::vector<torch::Tensor> kept_;
};

}  // namespace ddprun::elastic
