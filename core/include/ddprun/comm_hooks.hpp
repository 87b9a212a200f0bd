// ddprun/comm_hooks.hpp: what DistributedDataParallel does with a full bucket instead of an allreduce. As PyTorch's
// torch.distributed.algorithms.ddp_comm_hooks.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <functional>
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
};

// Called with this rank's gradients, not divided by the world size. Must leave their average over the ranks in
// `bucket.buffer`. `group` is that of DistributedDataParallel. All ranks call its collectives in the same order. Grad
// mode is off.
//
// Buckets are rebuilt once, after the first synchronized backward(). Their number, sizes and parameters change then.
//
// Threads: on a CPU, the communication thread calls the hook for every bucket but the last, while backward is running.
// The thread that called backward() calls it for the last one. Calls never overlap. On a GPU, the work of the hook
// belongs on the current stream. What the hook throws leaves backward().
using CommHook = std::function<void(GradBucket& bucket, const Group& group)>;

// The average, as without a hook, up to rounding: it divides by n, and without a hook gradients are multiplied by 1/n.
void allreduce_hook(GradBucket& bucket, const Group& group);
// The average in float16 or bfloat16: half the bytes on the wire. Throws CommError if the backend does not support the
// dtype. Gradients of a 16-bit dtype are averaged in their own dtype.
void fp16_compress_hook(GradBucket& bucket, const Group& group);
void bf16_compress_hook(GradBucket& bucket, const Group& group);

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
