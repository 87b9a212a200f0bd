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

// Called with this rank's gradients, not divided by the number of ranks. Leaves their average over the ranks in
// `bucket.buffer`. Uses `group` for collectives, in the same order on all ranks.
//
// Threads: on a CPU, a thread other than the one that runs backward calls it, while backward goes on; one call at a
// time. On a GPU, its work belongs on the current stream. What it throws leaves backward().
using CommHook = std::function<void(GradBucket& bucket, const Group& group)>;

// The average, as without a hook.
void allreduce_hook(GradBucket& bucket, const Group& group);
// The average in float16 or bfloat16: half the bytes on the wire. Throws CommError if the backend does not support the
// dtype. Gradients that are already of 16 bits stay as they are.
void fp16_compress_hook(GradBucket& bucket, const Group& group);
void bf16_compress_hook(GradBucket& bucket, const Group& group);

// PowerSGD (Vogels et al. 2019, "PowerSGD: Practical Low-Rank Gradient Compression for Distributed Optimization"). A
// gradient is a matrix [n, m], where n is its first dimension. The ranks exchange its factors [n, rank] and [m, rank].
// The results are those of PyTorch's hook, bit for bit, if the ranks' sums are.
struct PowerSgdOptions {
  int64_t matrix_approximation_rank = 1;
  int64_t start_iter = 1000;        // steps with an ordinary allreduce before; at least 2
  double min_compression_rate = 2;  // a gradient that would shrink less is not compressed
  bool use_error_feedback = true;   // adds what compression has lost to the next step's gradients
  bool warm_start = true;           // starts from the factors of the step before
  uint64_t random_seed = 0;         // of the first factors; equal on all ranks
};
// A hook for one DistributedDataParallel object: it keeps the factors and the errors. Needs up to three times the
// memory of the gradients. Throws Error(usage) for options out of range.
CommHook power_sgd_hook(const PowerSgdOptions& options = {});

}  // namespace ddprun
