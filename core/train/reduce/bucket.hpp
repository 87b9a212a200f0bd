// Buckets: which gradients are averaged together, and the memory that one allreduce averages.
#pragma once

#include <torch/torch.h>

#include <chrono>
#include <cstddef>
#include <vector>

#include "ddprun/comm_backend.hpp"
#include "train/loop/parameters.hpp"

namespace ddprun::train {

// One allreduce of a bucket.
struct Transfer {
  std::size_t bytes = 0;  // payload: the bucket's elements
  // From the call (on a GPU: from when the stream reached it) until all data had arrived, including the wait for slower
  // ranks. On the host's clock.
  std::chrono::steady_clock::time_point begin, end;

  double seconds() const { return std::chrono::duration<double>(end - begin).count(); }
};

// The properties of a parameter that the plan depends on.
struct ParameterInfo {
  std::size_t elements = 0;
  DType dtype = DType::float32;
};

struct Slot {
  std::size_t parameter = 0;
  std::size_t offset = 0;  // in elements, from the start of the bucket
};

struct BucketPlan {
  DType dtype = DType::float32;
  std::size_t elements = 0;
  std::vector<Slot> slots;
};

// A pure function, so every rank computes the same plan.
// Fills buckets in the given order of parameters. A bucket holds one dtype and is complete when it reaches its cap. For
// a model of one dtype this equals c10d's compute_bucket_assignment_by_size. The first bucket has its own cap: a small
// one starts communication early (Li et al. 2020, "PyTorch Distributed", section 3.2.3). The result lists the buckets
// in the order in which their last gradient becomes ready; they are reduced in this order.
std::vector<BucketPlan> plan_buckets(const std::vector<ParameterInfo>& parameters,
                                     const std::vector<std::size_t>& order, std::size_t first_cap_bytes,
                                     std::size_t cap_bytes);

// Contiguous memory with a view for each gradient. The backend allocates it, or LibTorch on a GPU if the backend has no
// CUDA memory.
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
