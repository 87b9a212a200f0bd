// A bucket: contiguous memory with a view for each gradient. The backend allocates it, or LibTorch on a GPU if the
// backend has no CUDA memory.
#pragma once

#include <torch/torch.h>

#include <vector>

#include "ddprun/comm_backend.hpp"
#include "train/loop/parameters.hpp"
#include "train/reduce/bucket_plan.hpp"
#include "train/reduce/transfer.hpp"

namespace ddprun::train {

class Bucket {
 public:
  // Collective, because it allocates from the backend.
  Bucket(CommBackend& backend, const BucketPlan& plan, const std::vector<NamedTensor>& parameters);

  // Copies a gradient, times `scale`, into the bucket, and makes the bucket's view the parameter's gradient. A gradient
  // that is already a view is scaled in place. `scale` is a wrapped number, so that the product keeps the gradient's
  // dtype.
  void copy_in(std::size_t slot, const torch::Tensor& parameter, const torch::Tensor& scale);
  // Sets the gradient of a parameter without gradient to zero.
  void set_zero(std::size_t slot, const torch::Tensor& parameter);

  // Sums the bucket over the ranks and waits for the result. With a stream-ordered backend, queues this on the current
  // stream.
  void allreduce(CommBackend& backend, std::chrono::milliseconds timeout);
  // How the last allreduce was carried out, and its bytes and times.
  const ExecutionInfo& execution() const { return execution_; }
  const Transfer& transfer() const { return transfer_; }

  const BucketPlan& plan() const { return plan_; }
  torch::Device device() const { return flat_.device(); }
  std::size_t bytes() const { return flat_.nbytes(); }

 private:
  BucketPlan plan_;
  torch::Tensor flat_;
  std::vector<torch::Tensor> views_;  // by slot
  ExecutionInfo execution_;
  Transfer transfer_;
};

}  // namespace ddprun::train
