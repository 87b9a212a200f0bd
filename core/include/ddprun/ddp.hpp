// ddprun/ddp.hpp: DistributedDataParallel for programs with a training loop of their own, with the names and the
// meaning of PyTorch's (Li et al. 2020, "PyTorch Distributed: Experiences on Accelerating Data Parallel Training").
//
//   ddprun::Group group = ddprun::init();
//   auto net = std::make_shared<Net>();
//   ddprun::DistributedDataParallel ddp(*net, group);
//   torch::optim::SGD sgd(net->parameters(), 0.01);
//   auto loader = torch::data::make_data_loader(dataset, ddprun::DistributedSampler(size, group), 64);
//   for (auto& batch : *loader) {
//     sgd.zero_grad();
//     torch::nll_loss(net->forward(batch.data), batch.target).backward();   // returns with averaged gradients
//     sgd.step();
//   }
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

namespace ddprun {

struct DistributedDataParallelOptions {
  double bucket_cap_mb = 25;            // MiB of gradients that are averaged together
  bool broadcast_buffers = true;        // after each backward, the buffers of rank 0 (BatchNorm) go to all ranks
  bool find_unused_parameters = false;  // a parameter without a gradient counts as zero; otherwise it is an error
  // Gradients are views of the buckets. If false, they are copied back from there, and need twice the memory.
  bool gradient_as_bucket_view = true;
  // Each step uses the same parameters, each as often as in the first step. Allows unused parameters, and several
  // gradients of a parameter in one backward, as with activation checkpointing.
  bool static_graph = false;
};

struct JoinOptions {
  // Gradients are divided by the number of all ranks; if false, by the number of ranks that still have inputs. Must be
  // true with a communication hook.
  bool divide_by_initial_world_size = true;
  // A rank that has no more inputs is an error on all ranks.
  bool throw_on_early_termination = false;
  // What a rank without inputs runs after each backward of the others. It has the averaged gradients then. Pass the
  // optimizer's step(), so that the optimizer's state stays equal on all ranks, and what else a step communicates.
  std::function<void()> after_backward = {};
};

// Makes every backward() on this module average the gradients over the ranks, while backward is still running. The
// module is used as before, not through this object.
//
// A second backward() adds to the averages of the first: gradients are then the average of the sums. A backward() that
// runs inside of another one (activation checkpointing) belongs to the outer one. A loss may depend on several modules
// that each have their DistributedDataParallel.
//
// Not thread-safe: one thread calls the constructor, backward() of the module's losses, and the functions below.
class DistributedDataParallel {
 public:
  // Copies the parameters and buffers of rank 0 to all ranks. Collective. The module must outlive this object; its
  // parameters must not be replaced, added or removed meanwhile. Throws Error(rendezvous) that names the first
  // parameter or buffer whose name, shape or dtype differs between the ranks, and Error(usage) if no parameter requires
  // a gradient or a parameter is not on the group's device.
  DistributedDataParallel(torch::nn::Module& module, const Group& group, DistributedDataParallelOptions options = {});
  ~DistributedDataParallel();
  DistributedDataParallel(const DistributedDataParallel&) = delete;
  DistributedDataParallel& operator=(const DistributedDataParallel&) = delete;

  // While the returned object lives, backward() adds to the gradients of this rank only. The next backward() without it
  // averages the sum of all: gradient accumulation with one allreduce.
  //
  //   { auto held = ddp.no_sync(); loss_of(first).backward(); }
  //   loss_of(second).backward();
  class [[nodiscard]] NoSync {
   public:
    ~NoSync();
    NoSync(const NoSync&) = delete;
    NoSync& operator=(const NoSync&) = delete;

   private:
    friend class DistributedDataParallel;
    explicit NoSync(DistributedDataParallel& ddp);
    DistributedDataParallel& ddp_;
    bool before_;
  };
  NoSync no_sync() { return NoSync(*this); }

  // From the next backward on, `hook` averages the buckets (comm_hooks.hpp). Once, on all ranks. Throws Error(usage)
  // the second time.
  void register_comm_hook(CommHook hook);

  // Runs `loop`, in which the ranks may have different numbers of steps: a rank that has returned from it takes part in
  // the steps of the others with zero gradients, until all have returned. Meanwhile, buffers are those of the last rank
  // that has inputs. In the end all ranks have the parameters and buffers of the last rank that had the most steps. As
  // PyTorch's Join. Collective; in `loop`, the ranks use no collectives but those of backward and of
  // JoinOptions::after_backward. Throws what `loop` throws.
  void join(const std::function<void()>& loop, JoinOptions options = {});

  // backward() of a loss of the module throws Error(failure) if a parameter has no gradient, or two, and as Group's
  // collectives. After that the group is of no more use.

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Which samples of an epoch this rank gets, for torch::data::make_data_loader: the indices of PyTorch's
// DistributedSampler, index for index. Call set_epoch before each epoch, or all epochs have the same order.
// Not thread-safe.
class DistributedSampler : public torch::data::samplers::Sampler<> {
 public:
  // `size`: samples of the data set. Throws Error(usage) if it is negative.
  DistributedSampler(std::size_t size, const Group& group, bool shuffle = true, uint64_t seed = 0,
                     Last last = Last::pad);

  void set_epoch(int64_t epoch);
  std::size_t size() const { return indices_.size(); }  // of this rank

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
