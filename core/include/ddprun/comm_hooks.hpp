// ddprun/comm_hooks.hpp: what DistributedDataParallel does with a full bucket instead of an allreduce. As PyTorch's
// torch.distributed.algorithms.ddp_comm_hooks.
#pragma once

#include <torch/torch.h>

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
  // [elements]: all gradients of the bucket, one after the other. A complex number is two elements, its parts.
  torch::Tensor buffer;
  std::vector<torch::Tensor> gradients;   // views of `buffer` with the parameters' shapes and dtypes
  std::vector<torch::Tensor> parameters;  // in the same order
  torch::Tensor payload;                  // the hook's own; kept from step to step, until the buckets are rebuilt
};

// Gets this rank's gradients, not divided by the world size, and must leave their average over the ranks in
// `bucket.buffer`. It may write into the buffer, or assign a tensor of the same shape and dtype to `bucket.buffer`, or
// to an element of `bucket.gradients`, which is then copied. `group` is that of DistributedDataParallel. All ranks call
// its collectives in the same order. Grad mode is off.
//
// One function is also a hook: it becomes the stage `reduce`. The stages before and after it may be empty. They compute
// without communication, for example to compress and to decompress.
//
// Buckets are rebuilt once, after the first synchronized backward(). Their number, sizes and parameters change then.
//
// Threads: on a CPU, the thread that calls backward() calls `prepare` when a bucket and all buckets before it are full.
// The communication thread calls `reduce`, one bucket at a time. At the end of backward(), before it returns, the first
// thread calls `complete`. `prepare` and `complete` may run at the same time as `reduce` of another bucket, so what
// they share needs a lock. Without `complete`, the thread of backward() calls `reduce` of the last bucket. On a GPU,
// the stages of a bucket run one after the other; queue their work on the current stream. What a stage throws leaves
// backward(); end the program then.
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
// The average in float16 or bfloat16. For float32 gradients, it sends half the bytes, and needs extra memory of half
// the gradients' size. Gradients of a 16-bit dtype are averaged in their own dtype. Throws CommError if the backend
// does not support the dtype.
CommHook fp16_compress_hook();
CommHook bf16_compress_hook();

}  // namespace ddprun
