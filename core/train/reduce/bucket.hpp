// Buckets: which gradients are averaged together, and the memory that one allreduce averages.
#pragma once

#include <torch/torch.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "ddprun/comm_backend.hpp"
#include "train/loop/parameters.hpp"

namespace ddprun::train {

// One reduction of a bucket over the ranks.
struct Transfer {
  std::size_t bytes = 0;  // payload
  // From the call (on a GPU: from when the stream reached it) until all data had arrived, including the wait for slower
  // ranks. On the host's clock.
  std::chrono::steady_clock::time_point begin, end;
  std::optional<std::chrono::steady_clock::time_point> ready{};  // when the bucket was full; not known on a GPU

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

// How a bucket was reduced.
struct Reduced {
  ExecutionInfo execution;
  std::size_t bytes = 0;  // payload of its collectives
};

// Contiguous memory with a view for each gradient. The backend allocates it, or LibTorch on a GPU if the backend has no
// CUDA memory.
class Bucket {
 public:
  // Collective, because it allocates from the backend.
  Bucket(CommBackend& backend, const BucketPlan& plan, const std::vector<NamedTensor>& parameters);

  // Copies the parameter's gradient, times `scale`, into the bucket; zeros if there is none. A gradient that is already
  // the bucket's view is scaled in place. `scale` is a wrapped number, so that the product keeps the gradient's dtype.
  void copy_in(std::size_t slot, const NamedTensor& parameter, const torch::Tensor& scale);
  void set_zero(std::size_t slot) { views_.at(slot).zero_(); }
  // Makes the bucket's view the parameter's gradient.
  void make_gradient(std::size_t slot, const NamedTensor& parameter) const;

  // Calls the function, which leaves the result in flat(), and measures it. With a stream-ordered backend, the function
  // queues its work on the current stream.
  void reduce(const std::function<Reduced(const Bucket& bucket)>& function);
  // How the last call carried out its collectives, and its bytes and times.
  const ExecutionInfo& execution() const { return execution_; }
  const Transfer& transfer() const { return transfer_; }

  const BucketPlan& plan() const { return plan_; }
  const torch::Tensor& flat() const { return flat_; }                 // [plan().elements]
  const std::vector<torch::Tensor>& views() const { return views_; }  // by slot, with the parameters' shapes
  torch::Device device() const { return flat_.device(); }

 private:
  BucketPlan plan_;
  torch::Tensor flat_;
  std::vector<torch::Tensor> views_;
  ExecutionInfo execution_;
  Transfer transfer_;
};

}  // namespace ddprun::train
