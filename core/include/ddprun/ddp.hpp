// ddprun/ddp.hpp: DistributedDataParallel for programs with a training loop of their own, with the names and the
// meaning of PyTorch's (Li et al. 2020, "PyTorch Distributed: Experiences on Accelerating Data Parallel Training").
// docs/library.md has examples.
#pragma once

#include <torch/torch.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "ddprun/comm_hooks.hpp"
#include "ddprun/group.hpp"
#include "ddprun/sampler.hpp"

namespace torch::jit {
struct Module;
}

namespace ddprun {
namespace elastic {
class VirtualRanks;
}

struct DistributedDataParallelOptions {
  // MiB of gradients that are averaged together. A bucket is full when it reaches this size; the first one already at
  // 1 MiB. Each bucket has one dtype. In the first step, all gradients of a dtype are in one bucket. The constructor
  // throws Error(usage) unless it is above 0 and at most 1e6.
  double bucket_cap_mb = 25;
  // At the end of each synchronized backward, the buffers of rank 0 (BatchNorm) go to all ranks.
  bool broadcast_buffers = true;
  // Allows a parameter without a gradient, which is otherwise an error. If only some ranks use the parameter, it counts
  // as zero on the others. If no rank uses it, its gradient stays as it was, or undefined.
  bool find_unused_parameters = false;
  // If false, gradients are copied into the buckets and back, and the buckets need as much memory again. If true,
  // gradients are views of the buckets: a tensor that the program keeps from p.grad() over zero_grad() is overwritten
  // by the next backward. The views stay valid after this object and the group have ended.
  bool gradient_as_bucket_view = false;
  // Set it if a parameter gets several gradients in one backward (activation checkpointing), or if the same parameters
  // are unused in every step. Each step must use the same parameters, each as often as in the first step.
  bool static_graph = false;
  // Above 0: the number of virtual ranks, a power of two that is at least the world size. Each step must be one call of
  // for_each_virtual_rank(). The gradients are then those of this many ranks, bit for bit (docs/elastic.md). The
  // constructor seeds virtual rank r with Torch's seed + r. Torch's seed must be equal on all ranks.
  int virtual_ranks = 0;
};

struct JoinOptions {
  // Gradients are divided by the world size; if false, by the number of ranks that still have inputs. With a
  // communication hook it must be true, otherwise join() throws Error(usage).
  bool divide_by_initial_world_size = true;
  // If true, the first rank without inputs makes join() throw Error(failure) on all ranks, unless all end together.
  bool throw_on_early_termination = false;
  // A rank without inputs calls it after each backward of the others, with the averaged gradients. Call the optimizer's
  // step() here, so that the optimizer's state stays equal on all ranks, and the other collectives of a step.
  std::function<void()> after_backward = {};
};

// Makes every backward() on this module average the gradients over the ranks, while backward is still running. The
// module is used as before, not through this object.
//
// A second backward() adds to the averages of the first: gradients are then the average of the sums. A backward() that
// runs inside of another one (activation checkpointing) belongs to the outer one. A loss may depend on several modules
// that each have their DistributedDataParallel.
//
// backward() throws Error(failure) if a parameter gets no gradient, or two gradients in one backward, unless an option
// allows it. It throws Error(failure) that names a parameter if parameters were added, removed, replaced, frozen or
// unfrozen, or have another shape, dtype or device since the constructor. It also throws what Group's collectives
// throw. Do not use the group after an error.
//
// Threads: one thread at a time calls the constructor, backward() of the module's losses, and the functions below; see
// Group.
class DistributedDataParallel {
  class Impl;

 public:
  // Copies the parameters and buffers of rank 0 to all ranks. Collective. Throws Error(rendezvous) that names the first
  // option, parameter or buffer that differs between the ranks (of a tensor: name, shape or dtype), and Error(usage) if
  // no parameter requires a gradient or a parameter or buffer is not on the group's device.
  //
  // The module must outlive this object. Meanwhile, its trainable parameters must stay the same, but they may get other
  // values, also by torch::load() on all ranks. So load, convert, freeze and replace layers first. Or destroy this
  // object, change the module, and construct another one.
  //
  // A parameter belongs to one object at a time, otherwise the constructor throws Error(usage). Two modules that have
  // parameters in common (actor and critic with one encoder) need one object: register both as children of one module.
  // If a loss uses only one of them, set find_unused_parameters.
  DistributedDataParallel(torch::nn::Module& module, const Group& group, DistributedDataParallelOptions options = {});
  // The same for a module of TorchScript, of which the object keeps a handle.
  DistributedDataParallel(const torch::jit::Module& module, const Group& group,
                          DistributedDataParallelOptions options = {});
  // The same for parameters without a module: leaf tensors. In messages, their names are "0", "1" and so on.
  DistributedDataParallel(const std::vector<torch::Tensor>& parameters, const Group& group,
                          DistributedDataParallelOptions options = {});
  ~DistributedDataParallel();
  // An object that was moved from can only be destroyed or assigned to.
  DistributedDataParallel(DistributedDataParallel&&) noexcept;
  DistributedDataParallel& operator=(DistributedDataParallel&&) noexcept;

  // While the returned object lives, backward() adds to the gradients of this rank only. The next backward() without it
  // averages the sum of all: gradient accumulation with one allreduce. Only backward() counts: unlike in PyTorch,
  // forward() may run outside. The returned guard, which points to nothing, must end before this object.
  //
  //   { auto held = ddp.no_sync(); loss_of(first).backward(); }
  //   loss_of(second).backward();
  [[nodiscard]] std::shared_ptr<void> no_sync();

  // For `ddprun compare`: the mean loss of this rank's samples in a step, and their number. Call it after the step's
  // backward(), before the next one. Does nothing in a program that compare has not started.
  void log(double loss, int64_t samples);

  // One training step with virtual_ranks. Calls step(r) for each virtual rank r of this process, in order. `step` runs
  // forward and one backward() on the samples of r; the loss depends on no other DistributedDataParallel. Meanwhile
  // Torch's random numbers and the module's buffers are those of r. Afterwards the gradients are averages over all
  // virtual ranks; earlier gradients are dropped. Collective. Throws Error(usage) without virtual_ranks, within
  // no_sync(), or if `step` calls a collective of the group; Error(failure) if backward() was not called; and what
  // `step` throws. After an error, construct the object again. If the module has a SyncBatchNorm, `step` runs in one
  // thread for each virtual rank, and only one of them runs at a time.
  //
  //   ddp.for_each_virtual_rank([&](int rank) { loss_of(batches_of(rank)).backward(); });
  void for_each_virtual_rank(const std::function<void(int rank)>& step);

  // From the next backward on, `hook` averages the buckets (comm_hooks.hpp). Call it once, on all ranks. Throws
  // Error(usage) the second time, and with virtual_ranks.
  void register_comm_hook(CommHook hook);

  // Runs `loop`, in which the ranks may have different numbers of steps, as PyTorch's Join. A step is a backward()
  // without no_sync(). A rank that has returned from `loop` takes part in the steps of the others with zero gradients,
  // until all have returned. Meanwhile, buffers are those of the highest rank that still has inputs. In the end, all
  // ranks have the parameters and buffers of the highest of the ranks with the most steps.
  //
  // Collective. Inside `loop`, call no collective except backward() and those that after_backward calls in the same
  // order. The module must not have a SyncBatchNorm in training mode, whose forward() is collective. Throws what `loop`
  // throws; then this object is of no more use.
  void join(const std::function<void()>& loop, JoinOptions options = {});

 private:
  friend class ElasticLoop;
  elastic::VirtualRanks* virtual_ranks() const;

  std::unique_ptr<Impl> impl_;
};

// A training that survives the death of ranks and hosts under `ddprun launch --nnodes LEAST:N` (docs/elastic.md). Calls
// step(ddp, n) for n = first, first + 1, ... until it returns false. `ddp` is a DistributedDataParallel(module, group,
// options) with virtual_ranks. After a death, the other ranks go on in the same processes, and `group` has fewer ranks.
// A rank that is started again joins between two steps; its `first` does not count.
//
// `step` first calls its own collectives, if there are any; then ddp.for_each_virtual_rank() once; then
// optimizer.step(). It must call no collective after for_each_virtual_rank(). It returns the same on all ranks. What it
// computes must follow from n, the virtual rank, the module and the optimizer's state: a rank that is behind gets only
// these from another one. So it sets the learning rate from n in each call. After a death, a collective throws an Error
// that must leave `step`; then `step` is called again, with the same n or, if a rank has finished this step, the next
// one.
//
// Returns false on a rank that was started again too late to join: its module is not trained.
//
// `group` is that of init(), and no subgroup and no other DistributedDataParallel may use it. Call it once. Collective.
// Throws Error(usage) without virtual_ranks or with broadcast_buffers = false; for a ZeroRedundancyOptimizer, or an
// optimizer with other parameters than the module's; for a group that was split or is on a GPU; and for a second call.
// Throws Error(failure) for an optimizer whose state cannot be kept (see save_checkpoint), if `step` has not called
// for_each_virtual_rank() once, or if a rank dies in a collective after it. Throws what `step` throws.
[[nodiscard]] bool train_elastic(const Group& group, torch::nn::Module& module, torch::optim::Optimizer& optimizer,
                                 const DistributedDataParallelOptions& options,
                                 const std::function<bool(DistributedDataParallel& ddp, int64_t n)>& step,
                                 int64_t first = 0);

// Which samples of an epoch this rank gets, for torch::data::make_data_loader: the indices of PyTorch's
// DistributedSampler, index for index. make_data_loader copies the sampler: in each epoch, call set_epoch(), then
// make_data_loader(). Without set_epoch(), all epochs have the same order. Not thread-safe.
class DistributedSampler : public torch::data::samplers::Sampler<> {
 public:
  // `size`: samples of the data set. Throws what group.rank() throws.
  DistributedSampler(std::size_t size, const Group& group, bool shuffle = true, uint64_t seed = 0,
                     Last last = Last::pad)
      : DistributedSampler(size, group.size(), group.rank(), shuffle, seed, last) {}
  // For virtual rank `rank`: num_replicas is virtual_ranks.
  DistributedSampler(std::size_t size, int num_replicas, int rank, bool shuffle = true, uint64_t seed = 0,
                     Last last = Last::pad);

  void set_epoch(int64_t epoch);
  std::size_t size() const { return indices_.size(); }  // of this sampler

  void reset(std::optional<std::size_t> new_size = std::nullopt) override;
  std::optional<std::vector<std::size_t>> next(std::size_t batch_size) override;
  void save(torch::serialize::OutputArchive& archive) const override;
  void load(torch::serialize::InputArchive& archive) override;

 private:
  std::shared_ptr<const ddprun::Sampler> sampler_;
  int64_t epoch_ = 0;
  std::vector<int64_t> indices_;
  std::size_t next_ = 0;
};

}  // namespace ddprun
