// ddprun/sync_batch_norm.hpp: BatchNorm over the batch of all ranks, as PyTorch's SyncBatchNorm.
#pragma once

#include <torch/torch.h>

#include <cstdint>

#include "ddprun/group.hpp"

namespace ddprun {

// Makes each BatchNorm1d, 2d and 3d in `module` (and `module` itself, if it is one) compute its statistics over the
// batches of all ranks of `group` while it is in training mode; in eval mode nothing changes. In place: the modules,
// their parameters, buffers and names stay. Returns how many BatchNorm modules there are. With a group of one rank they
// stay ordinary. With virtual ranks, the statistics are over the batches of all virtual ranks, also in a group of one
// rank. Then call this function before you construct DistributedDataParallel, and pass both the same group. All virtual
// ranks of a step must run the same modules in the same order.
//
// The ranks may have batches of different size, also empty ones. Input float32, float64, or half precision, for which
// the statistics are float32. Gradients of weight and bias are those of this rank; DistributedDataParallel averages
// them. There is no second derivative.
//
// forward() and backward() of a converted module are collective. Threads: see Group. They throw what Group's
// collectives throw, and Error(usage) if the group has ended: the module holds no copy of the group.
//
// A converted module is known by its parameters and buffers. to(device or dtype), load and optimizers keep them; after
// assigning a new tensor to one of them, and for a clone() of the module, call the function again. Calling it twice is
// allowed; the last group counts. Throws Error(usage) that names a BatchNorm without parameters and buffers, which
// cannot be recognized; then nothing is converted. It is not collective. It is thread-safe.
//
// The statistics of the ranks are combined as in Chan, Golub, LeVeque 1979, "Updating Formulae and a Pairwise Algorithm
// for Computing Sample Variances".
int64_t convert_sync_batchnorm(torch::nn::Module& module, const Group& group);

}  // namespace ddprun
