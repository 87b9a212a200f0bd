// Virtual ranks: a training on any number of ranks that computes what as many ranks as virtual ranks compute, bit for
// bit. As EasyScale (Li et al. 2023) and VirtualFlow (Or et al. 2022), and with one order of additions (tree.hpp).
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ddprun/plugin/dataset_plugin.hpp"
#include "elastic/tree_reduction.hpp"
#include "train/loop/strategy.hpp"

namespace ddprun::elastic {

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
  bool in_program = false;  // of a program's own loop, for run(): the process draws random numbers of its own too
  bool is_checked = false;  // before an earlier change of the ranks: the first step need not be computed twice
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
    std::vector<torch::Tensor> buffers;  // if they are its own
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

// Fetches the first samples again in another order. Throws Error(usage) that names a sample if it changes, because
// the order of fetches depends on the number of ranks.
void require_same_samples(const Dataset& dataset);

// The virtual ranks of this rank. It must outlive `sync`, whose steps use it.
class VirtualRanks {
 public:
  // Throws as TreeReduction, and Error(usage) unless the number of virtual ranks is a power of two that is at least the
  // number of ranks.
  VirtualRanks(train::ModelTensors model, train::GradientSync& sync, comm::Group ranks,
               const VirtualRanksOptions& options);

  PartStates& states() { return states_; }
  // Seeds the virtual ranks of a program.
  void seed(uint64_t seed) {
    states_.apart([&] { states_.seed(seed); });
  }
  // Of a program that goes on after ranks have died: as VirtualRanksOptions::survives, from this step on.
  void survive(int64_t step);
  // A step of a program's own loop, as DistributedDataParallel::for_each_virtual_rank(). In the backward() of the last
  // virtual rank, call finalize() instead of that of `sync`.
  void run(const std::function<void(int rank)>& step);
  int64_t steps() const { return steps_; }  // how many run() has completed; with survive(), also those before
  void finalize();
  // Strategy ddp over the virtual ranks. `ddp` is that of `sync`. This object must outlive the result.
  std::unique_ptr<train::Strategy> strategy(Model& model, std::unique_ptr<train::Strategy> ddp);

 private:
  const VirtualRanksOptions options_;
  train::GradientSync& sync_;
  TreeReduction reduction_;
  PartStates states_;
  bool is_last_ = false;  // the virtual rank of run()
  int64_t steps_ = 0;
};

}  // namespace ddprun::elastic
