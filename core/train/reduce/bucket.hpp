// One bucket: memory of the backend, or of the GPU where the backend gives none there, with a view into it for each
// gradient.
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
  // Collective (it allocates from the backend).
  Bucket(CommBackend& backend, const BucketPlan& plan, const std::vector<NamedTensor>& parameters);

  // Copies the gradient of a slot's parameter into the bucket, times `scale` (a wrapped number, so that the
  // product keeps the gradient's type), and makes the bucket's view the gradient. Where it already is one, it is scaled
  // in place.
  void copy_in(std::size_t slot, const torch::Tensor& parameter, const torch::Tensor& scale);
  // Makes the gradient zero, for a parameter that had none.
  void set_zero(std::size_t slot, const torch::Tensor& parameter);

  // Sums the bucket over the ranks and waits for it; with a stream-ordered backend, queues that on the current stream.
  void allreduce(CommBackend& backend, std::chrono::milliseconds timeout);
  // What carried out the last allreduce, and what the call moved when.
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
