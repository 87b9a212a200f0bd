// PowerSGD (Vogels et al. 2019, "PowerSGD: Practical Low-Rank Gradient Compression for Distributed Optimization") as a
// communication hook of DistributedDataParallel. A gradient is a matrix [n, m], where n is its first dimension. The
// ranks exchange its factors [n, r] and [m, r], where r = matrix_approximation_rank, but at most n and m. The results
// are those of PyTorch's hook, bit for bit, if the sums over the ranks are.
#pragma once

#include <ddprun/comm_hooks.hpp>

#include <cstdint>

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
// Needs up to three times the memory of the gradients. Throws ddprun::Error(usage) for options out of range.
ddprun::CommHook power_sgd_hook(const PowerSgdOptions& options = {});
