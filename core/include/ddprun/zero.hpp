// ddprun/zero.hpp: ZeroRedundancyOptimizer, ZeRO stage 1 (Rajbhandari et al. 2020, "ZeRO: Memory Optimizations Toward
// Training Trillion Parameter Models"), with the names and the partition of PyTorch's.
#pragma once

#include <torch/torch.h>

#include <functional>
#include <map>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "ddprun/group.hpp"

namespace ddprun {

// An optimizer whose state is distributed over the ranks. Each parameter belongs as a whole to one rank, which keeps
// its state. With N ranks, a rank keeps about 1/N of the state. (Adam's state has 8 bytes for each float32 element.)
// The rank of the largest parameter keeps at least that parameter's state. step() updates the parameters of this rank,
// and then broadcasts them. Gradients are those of DistributedDataParallel: complete on each rank.
//
// Partition: the parameters of a group, largest first, each to the rank that has the fewest elements so far. It is that
// of PyTorch's ZeroRedundancyOptimizer.
//
// Changes of param_groups(), such as a learning rate, take effect with the next step. add_param_group() is allowed: the
// next step() compares the parameters of the ranks again. Parameters may have different dtypes. For optimizers that
// treat each parameter on its own: all of LibTorch but LBFGS, which does not compile.
//
// The ranks must have the same parameters and options. New values of a parameter (torch::load into the module, copy_())
// are allowed, on all ranks. step() throws Error(usage) that names the parameter if the dtype, shape or memory layout
// of a parameter has changed, or if param_groups() has another one in its place. Threads: see Group.
class ShardedOptimizer : public torch::optim::Optimizer {
 public:
  using Groups = std::vector<torch::optim::OptimizerParamGroup>;
  // Makes an ordinary optimizer of these parameters.
  using Make = std::function<std::unique_ptr<torch::optim::Optimizer>(const Groups&)>;

  // Collective. Throws Error(rendezvous) that names the first parameter whose shape, dtype or memory layout differs
  // between the ranks, and Error(usage) if a parameter is sparse or has gaps in memory.
  ShardedOptimizer(const Groups& groups, const Group& group, Make make);
  ~ShardedOptimizer() override;

  // Collective. The closure is called as the ordinary optimizer calls it. Afterwards the parameters are equal on all
  // ranks, bit for bit. Throws what Group's collectives throw, and after add_param_group() as the constructor.
  torch::Tensor step(LossClosure closure = nullptr) override;

  // The rank that has the state of this parameter. Throws Error(usage) if it is not a parameter of this optimizer.
  int owner(const torch::Tensor& parameter) const;

  // state() has the entries of this rank's parameters. After this function, it has those of all parameters on rank
  // `to`, until the next step; the entries of the other ranks are on the CPU. Collective. Throws Error(usage) if `to`
  // is no rank of the group, and what Group's collectives throw.
  void consolidate_state_dict(int to = 0);

  // Throws Error(usage) unless this rank has the state of all parameters.
  void require_whole_state() const;

  // The reverse of consolidate_state_dict(): keeps only the entries of this rank's parameters. step() and load() call
  // it.
  void drop_state_of_others();

  // The archive is that of the ordinary optimizer of all parameters: either can load what the other has saved, with
  // any world size.
  //   zero.consolidate_state_dict(0);                        // on all ranks
  //   if (group.rank() == 0) torch::save(zero, "adam.pt");
  //   torch::load(zero, "adam.pt", device);                  // on all ranks; the device of the parameters
  // save() throws as require_whole_state(). load() is not collective: every rank reads the file.
  void save(torch::serialize::OutputArchive& archive) const override;
  void load(torch::serialize::InputArchive& archive) override;

 private:
  ShardedOptimizer(const torch::optim::Optimizer& whole, Group group, Make make);
  void partition();
  void require_unchanged() const;
  Groups groups_of(int rank) const;
  std::unique_ptr<torch::optim::Optimizer> with_state(const Groups& groups) const;
  void take_state(torch::optim::Optimizer& optimizer);
  void broadcast_parameters();

  const Group group_;
  const Make make_;
  std::map<const void*, int> owners_;  // by TensorImpl
  struct Seen {
    const void* parameter = nullptr;  // TensorImpl
    torch::Tensor form;               // its dtype, shape and strides: on the device "meta", without memory
  };
  std::vector<Seen> seen_;                          // the parameters when they were partitioned; one may be there twice
  std::unique_ptr<torch::optim::Optimizer> local_;  // of this rank's parameters; has the state only within step()
  bool consolidated_ = false;
};

// With the arguments of OptimizerClass, and the group:
//   ZeroRedundancyOptimizer<torch::optim::AdamW> adamw(net.parameters(), torch::optim::AdamWOptions(1e-3), group);
template <class OptimizerClass>
class ZeroRedundancyOptimizer final : public ShardedOptimizer {
  static_assert(!std::is_base_of_v<torch::optim::LBFGS, OptimizerClass>,
                "LBFGS computes its step from all parameters together, and cannot be distributed over the ranks");

 public:
  template <class Options>
  ZeroRedundancyOptimizer(std::vector<torch::Tensor> parameters, const Options& options, const Group& group)
      : ZeroRedundancyOptimizer(Groups{torch::optim::OptimizerParamGroup(std::move(parameters))}, options, group) {}

  template <class Options>
  ZeroRedundancyOptimizer(const Groups& groups, const Options& options, const Group& group)
      : ShardedOptimizer(groups, group,
                         [options](const Groups& mine) { return std::make_unique<OptimizerClass>(mine, options); }) {}
};

}  // namespace ddprun
