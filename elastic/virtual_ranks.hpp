// Virtual ranks: a training whose numbers depend on the number of virtual ranks and not on that of ranks, bit for bit.
// As EasyScale (Li et al. 2023) and VirtualFlow (Or et al. 2022), and with one order of additions (tree.hpp).
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ddprun/plugin/dataset_plugin.hpp"
#include "elastic/lockstep.hpp"
#include "elastic/part_states.hpp"
#include "elastic/tree_reduction.hpp"
#include "train/loop/strategy.hpp"

namespace ddprun::elastic {

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
  // virtual rank, call finalize() instead of that of `sync`. If the virtual ranks synchronize, run calls `end` instead.
  void run(const std::function<void(int rank)>& step, const std::function<void()>& end);
  int64_t steps() const { return steps_; }  // how many run() has completed; with survive(), also those before
  void finalize();
  // Strategy ddp over the virtual ranks. `ddp` is that of `sync`. This object must outlive the result.
  std::unique_ptr<train::Strategy> strategy(Model& model, std::unique_ptr<train::Strategy> ddp);

 private:
  class Strategy;

  torch::Tensor exchange(const torch::Tensor& rows) const;
  // Computes the parts of a step in turns, and adds their gradients. What `sync` has to reduce is complete then.
  void run_in_turns(const std::function<void(int part)>& body, int64_t step);

  const VirtualRanksOptions options_;
  const comm::Group ranks_;
  train::GradientSync& sync_;
  TreeReduction reduction_;
  PartStates states_;
  Lockstep lockstep_;
  bool is_last_ = false;  // the virtual rank of run()
  int64_t steps_ = 0;
};

}  // namespace ddprun::elastic
