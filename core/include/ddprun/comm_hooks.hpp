// ddprun/comm_hooks.hpp: what DistributedDataParallel does with a full bucket instead of an allreduce. As PyTorch's
// torch.distributed.algorithms.ddp_comm_hooks.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

#include "ddprun/group.hpp"

namespace ddprun {

// Gradients that are reduced together. All tensors are on the group's device.
struct GradBucket {
  int index = 0;  // in the order in which the buckets of a step are reduced
  bool is_last = false;
  torch::Tensor buffer;                   // [elements]: all gradients of the bucket, one after the other
  std::vector<torch::Tensor> gradients;   // views of `buffer` with the parameters' shapes
  std::vector<torch::Tensor> parameters;  // in the same order
  torch::Tensor payload;                  // the hook's own; kept from step to step, until the buckets are rebuilt
};

// Gets this rank's gradients, not divided by the world size, and must leave their average over the ranks in
// `bucket.buffer`. `group` is that of DistributedDataParallel. All ranks call its collectives in the same order. Grad
// mode is off.
//
// A function is a hook: it becomes `reduce`. The other two stages may be empty. They compute without communication,
// for example to compress and to decompress, while `reduce` of another bucket sends and receives.
//
// Buckets are rebuilt once, after the first synchronized backward(). Their number, sizes and parameters change then.
//
// Threads: on a CPU, the communication thread calls `reduce`, while backward is running. Its calls never overlap. The
// thread that called backward() calls `prepare` as soon as a bucket is full, and `complete` after backward; without
// `complete`, it also calls `reduce` of the last bucket. On a GPU, the stages follow each other, and their work
// belongs on the current stream. What a stage throws leaves backward().
struct CommHook {
  using Stage = std::function<void(GradBucket& bucket, const Group& group)>;

  CommHook() = default;  // no hook
  template <class Function, class = std::enable_if_t<std::is_constructible_v<Stage, Function>>>
  CommHook(Function function) : reduce(std::move(function)) {}

  explicit operator bool() const { return reduce != nullptr; }

  Stage prepare;   // must not use the group's collectives
  Stage reduce;    // the only stage that communicates
  Stage complete;  // must not use the group's collectives
};

// The average, as without a hook, up to rounding: it divides by n, and without a hook gradients are multiplied by 1/n.
void allreduce_hook(GradBucket& bucket, const Group& group);
// The average in float16 or bfloat16: half the bytes on the wire. Throws CommError if the backend does not support the
// dtype. Gradients of a 16-bit dtype are averaged in their own dtype. Needs half of the memory of the gradients.
CommHook fp16_compress_hook();
CommHook bf16_compress_hook();

// PowerSGD (Vogels et al. 2019, "PowerSGD: Practical Low-Rank Gradient Compression for Distributed Optimization"). A
// gradient is a matrix [n, m], where n is its first dimension. The ranks exchange its factors [n, r] and [m, r], where
// r = matrix_approximation_rank, but at most n and m. The results are those of PyTorch's hook, bit for bit, if the sums
// over the ranks are.
struct PowerSgdOptions {
  int64_t matrix_approximation_rank = 1;
  int64_t start_iter = 1000;        // steps with an ordinary allreduce before; at least 2
  double min_compression_rate = 2;  // a gradient that would shrink less is not compressed
  bool use_error_feedback = true;   // adds what compression has lost to the next step's gradients
  bool warm_start = true;           // starts from the factors of the step before
  uint64_t random_seed = 0;         // of the first factors; must be equal on all ranks, which is not checked
};
// A hook for one DistributedDataParallel object. It keeps the factors, the errors and the number of steps; copies of
// the hook share them. A checkpoint does not hold them: a resumed run begins again with start_iter uncompressed steps.
// Needs up to three times the memory of the gradients. Throws Error(usage) for options out of range.
CommHook power_sgd_hook(const PowerSgdOptions& options = {});

}  // namespace ddprun
